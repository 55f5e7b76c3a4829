//! Free ports on the loopback interface that are nobody's default.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, TcpListener};

use anyhow::bail;

/// Below the range from which systems take the ports of outgoing connections (32768 and up on
/// Linux): a port that was free is not taken by a test's connection before its server listens, nor
/// while a server restarts.
const FIRST: u16 = 10_240;
const LAST: u16 = 25_599;

/// For `rabbitmqctl`, which listens for a moment on the first free port of a range.
pub(crate) const RABBITMQCTL: (u16, u16) = (26_000, 31_999);

/// Default ports of servers, and of things that watch or proxy them.
const DEFAULTS: [u16; 12] = [1883, 3306, 4369, 5432, 5671, 5672, 6379, 11_211, 15_672, 15_692, 16_379, 25_672];

/// This many different free ports.
pub(crate) fn pick<const N: usize>() -> anyhow::Result<[u16; N]> {
    pick_by(is_free)
}

fn pick_by<const N: usize>(is_free: impl Fn(u16) -> bool) -> anyhow::Result<[u16; N]> {
    let size = u64::from(LAST - FIRST) + 1;
    // Two commands that start at once begin at different places.
    let start = RandomState::new().hash_one(0) % size;
    let mut ports = (0..size)
        .filter_map(|step| u16::try_from((start + step) % size).ok())
        .map(|offset| FIRST + offset)
        .filter(|&port| is_allowed(port) && is_free(port));
    let mut picked = [0; N];
    for place in &mut picked {
        match ports.next() {
            Some(port) => *place = port,
            None => bail!("no free port between {FIRST} and {LAST} on 127.0.0.1"),
        }
    }
    debug_assert_eq!(HashSet::from(picked).len(), N);
    Ok(picked)
}

fn is_allowed(port: u16) -> bool {
    !DEFAULTS.contains(&port)
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picked_ports_are_different_and_free() -> anyhow::Result<()> {
        let ports = pick::<8>()?;
        assert_eq!(HashSet::from(ports).len(), 8);
        Ok(())
    }

    #[test]
    fn defaults_are_never_picked() {
        let only_defaults = pick_by::<1>(|port| DEFAULTS.contains(&port));
        assert!(only_defaults.is_err(), "{only_defaults:?}");
    }

    #[test]
    fn a_taken_port_is_not_picked() -> anyhow::Result<()> {
        let [port] = pick::<1>()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        assert!(!is_free(listener.local_addr()?.port()));
        Ok(())
    }

    #[test]
    fn the_search_wraps_around() -> anyhow::Result<()> {
        assert_eq!(pick_by::<1>(|port| port == FIRST)?, [FIRST]);
        assert_eq!(pick_by::<1>(|port| port == LAST)?, [LAST]);
        Ok(())
    }
}
