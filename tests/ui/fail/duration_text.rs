#[path = "../shop.rs"]
mod shop;

use mqguard::consumer;
use shop::{Order, register};

#[consumer(queue = "q", timeout = "")]
async fn f1(_order: Order) {}

#[consumer(queue = "q", timeout = "5")]
async fn f2(_order: Order) {}

#[consumer(queue = "q", timeout = "30000")]
async fn f3(_order: Order) {}

#[consumer(queue = "q", timeout = "5 sec")]
async fn f4(_order: Order) {}

#[consumer(queue = "q", timeout = "5S")]
async fn f5(_order: Order) {}

#[consumer(queue = "q", timeout = "-5s")]
async fn f6(_order: Order) {}

#[consumer(queue = "q", timeout = " 5s")]
async fn f7(_order: Order) {}

#[consumer(queue = "q", timeout = "5s5s")]
async fn f8(_order: Order) {}

#[consumer(queue = "q", timeout = "1m30h")]
async fn f9(_order: Order) {}

#[consumer(queue = "q", timeout = "0.5s")]
async fn f10(_order: Order) {}

#[consumer(queue = "q", timeout = "5min")]
async fn f11(_order: Order) {}

#[consumer(queue = "q", timeout = "1.5h")]
async fn f12(_order: Order) {}

#[consumer(queue = "q", timeout = "5x")]
async fn f13(_order: Order) {}

#[consumer(queue = "q", timeout = "five")]
async fn f14(_order: Order) {}

#[consumer(queue = "q", timeout = "s")]
async fn f15(_order: Order) {}

#[consumer(queue = "q", timeout = "٥s")]
async fn f16(_order: Order) {}

#[consumer(queue = "q", timeout = "18446744073709551615s")]
async fn f17(_order: Order) {}

#[consumer(queue = "q", timeout = "99999999999999999999s")]
async fn f18(_order: Order) {}

#[consumer(queue = "q", timeout = "1 week")]
async fn f19(_order: Order) {}

#[consumer(queue = "q", timeout = "5s,10s")]
async fn f20(_order: Order) {}

fn main() {
    register::<f1>();
    register::<f2>();
    register::<f3>();
    register::<f4>();
    register::<f5>();
    register::<f6>();
    register::<f7>();
    register::<f8>();
    register::<f9>();
    register::<f10>();
    register::<f11>();
    register::<f12>();
    register::<f13>();
    register::<f14>();
    register::<f15>();
    register::<f16>();
    register::<f17>();
    register::<f18>();
    register::<f19>();
    register::<f20>();
}
