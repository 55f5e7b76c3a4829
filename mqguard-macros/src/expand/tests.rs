//! What the macros make of an item, as text.

#![allow(clippy::unwrap_used, clippy::panic)]

use proc_macro2::{TokenStream, TokenTree};
use syn::{Item, ItemEnum, ItemFn, ItemImpl};

const ITEM: &str = "/// Processes an order.\nasync fn process(order: Order) -> Result<(), OrderError> { Ok(()) }";

fn tokens(text: &str) -> TokenStream {
    text.parse().unwrap()
}

fn consumer(args: &str, item: &str) -> TokenStream {
    super::consumer(tokens(args), &tokens(item))
}

fn dead_letter_consumer(args: &str, item: &str) -> TokenStream {
    super::dead_letter_consumer(tokens(args), &tokens(item))
}

fn lines(expansion: TokenStream) -> usize {
    prettyplease::unparse(&syn::parse2(expansion).unwrap()).lines().count()
}

/// How many tokens there are, those in brackets too.
fn count(tokens: TokenStream) -> usize {
    let in_it = |token| match token {
        TokenTree::Group(group) => 2 + count(group.stream()),
        _ => 1,
    };
    tokens.into_iter().map(in_it).sum()
}

/// What the compiler has to read for one consumer besides the function itself. A budget: whoever exceeds it says why it is worth it.
#[test]
fn the_expansion_is_small() {
    let usual =
        r#"queue = "q", dlq = "d", retry(max = 3, delay = "5s", factor = 2), idempotent(store = "redis", key = "order_id")"#;
    let with_state = ITEM.replace("order: Order", "order: Order, db: State<Db>, cx: Context");
    for (args, item, most_lines, most_tokens) in
        [(r#"queue = "q""#, ITEM, 36, 310), (usual, ITEM, 73, 630), (usual, with_state.as_str(), 89, 780)]
    {
        let expansion = consumer(args, item);
        let (lines, tokens) = (lines(expansion.clone()) - lines(tokens(item)), count(expansion) - count(tokens(item)));
        assert!(lines <= most_lines && tokens <= most_tokens, "{lines} lines, {tokens} tokens for {args}");
    }
    let error = "enum E { #[retryable] A, #[fatal] B(u8), #[retryable(inherit)] C(io::Error), #[retryable(after = wait)] D { wait: Duration } }";
    let derived = super::retryable_error(tokens(error));
    let (lines, tokens) = (lines(derived.clone()), count(derived));
    assert!(lines <= 20 && tokens <= 210, "{lines} lines, {tokens} tokens for four variants");
}

/// Whether the expansion starts with the item as it was, and goes on with the companion and its impl.
fn survives(expansion: &TokenStream, item: &str) -> Result<(), String> {
    let text = expansion.to_string();
    let item = tokens(item).to_string();
    if !text.starts_with(&item) {
        return Err(format!("the item is not first: {text}"));
    }
    let rest = tokens(&text[item.len()..]);
    let items = syn::parse2::<syn::File>(rest).map_err(|problem| format!("{problem}: {text}"))?.items;
    let is_companion = |item: &Item| matches!(item, Item::Enum(ItemEnum { ident, .. }) if ident == "process");
    let is_impl = |item: &Item| matches!(item, Item::Impl(ItemImpl { trait_: Some(_), .. }));
    let mistakes = items.iter().filter(|item| matches!(item, Item::Macro(_))).count();
    match (items.iter().any(is_companion), items.iter().any(is_impl), mistakes) {
        (true, true, 1..) => Ok(()),
        found => Err(format!("companion, impl, mistakes: {found:?} in {text}")),
    }
}

#[test]
fn the_item_survives_every_fault_of_the_attribute() {
    let faults = [
        "",
        "quue = \"q\"",
        "queue",
        "queue = ",
        "queue = 5",
        "queue = Q",
        "queue = \"\"",
        "queue = \"q\", queue = \"r\"",
        "\"q\"",
        "= = =",
        ", , ,",
        "queue = \"q\", retry(max = 3)",
        "queue = \"q\", dlq = \"d\", retry",
        "queue = \"q\", dlq = \"d\", retry(max = \"three\")",
        "queue = \"q\", dlq = \"d\", retry(max = 3, delay = \"5 sec\")",
        "queue = \"q\", dlq = \"d\", retry(max = 3, delay = \"2d\"), idempotent = \"redis\"",
        "queue = \"q\", idempotent = \"rediss\"",
        "queue = \"q\", bind()",
        "queue = \"q\", concurrency = 64",
        "queue = \"q\", crate = \"x\"",
        "queue = \"q\", precheck = |x| x",
        "#![x]",
        "queue = \"q\" 'a'",
        "queue::<Q> = 3",
        "r#queue = \"q\"",
        "{ queue = \"q\" }",
    ];
    for args in faults {
        if let Err(problem) = survives(&consumer(args, ITEM), ITEM) {
            panic!("{args}: {problem}");
        }
    }
    for args in ["", "queue = \"q\", retry(max = 3)", "of = f"] {
        if let Err(problem) = survives(&dead_letter_consumer(args, ITEM), ITEM) {
            panic!("{args}: {problem}");
        }
    }
}

#[test]
fn the_item_survives_every_fault_of_the_signature() {
    let faults = [
        "fn process(order: Order) {}",
        "async fn process() {}",
        "async fn process<T>(order: T) {}",
        "async fn process<'a>(order: &'a Order) {}",
        "async fn process(order: &Order) {}",
        "async fn process(order: impl Send) {}",
        "async fn process(order: Order) where Order: Send {}",
        "async fn process(order: Order, cx: &Context) {}",
        "async fn process(order: Order) -> impl Sized {}",
        "unsafe fn process(order: Order) {}",
        "extern \"C\" fn process(order: Order) {}",
        "unsafe extern \"C\" fn process(order: u8, ...) {}",
        "pub(crate) fn process(#[cfg(x)] order: Order) { let x = order.; }",
    ];
    for item in faults {
        if let Err(problem) = survives(&consumer("queue = \"q\"", item), item) {
            panic!("{item}: {problem}");
        }
    }
}

#[test]
fn a_half_typed_function_is_left_to_the_compiler() {
    let item = "async fn process(order: Order) -> Result<(), OrderError> { let x = order.; match { } }";
    let expansion = consumer("queue = \"q\"", item).to_string();
    assert!(expansion.starts_with(&tokens(item).to_string()));
    assert!(!expansion.contains("compile_error"), "{expansion}");
}

#[test]
fn an_item_that_is_no_function_stays() {
    for item in ["struct Service;", "impl Service { async fn process() {} }", "const process: u8 = 0;", "async fn", "42", ""] {
        let expansion = consumer("queue = \"q\"", item).to_string();
        assert!(expansion.starts_with(&tokens(item).to_string()), "{item}: {expansion}");
        assert!(expansion.contains("compile_error"), "{item}: {expansion}");
    }
}

#[test]
fn types_of_the_signature_are_mentioned_once() {
    let item = "async fn process(order: Unusual) -> Special<(), Peculiar> {}";
    let expansion = consumer(r#"queue = "q", idempotent(store = "memory", key = "id"), precheck = check"#, item).to_string();
    for name in ["Unusual", "Special", "Peculiar"] {
        assert_eq!(expansion.matches(name).count(), 2, "{name} in {expansion}");
    }
}

#[test]
fn every_path_is_absolute() {
    let args = r#"
        queue = "q", dlq = "d", retry(max = 3, max_delay = "1m", within = "1h"), bind(exchange = "x", routing_key = "y"),
        idempotent(store = "memory", key = "id", identity = "key", missing_id = "run"), concurrency = 2, on_panic = "fatal"
    "#;
    let item = "async fn process(order: Order, state: Db) -> Outcome {}";
    let expansion = consumer(args, item);
    let file: syn::File = syn::parse2(expansion).unwrap();
    let wiring = file.items.iter().filter(|item| !matches!(item, Item::Fn(ItemFn { .. })));
    let text: String = wiring.map(|item| quote::ToTokens::to_token_stream(item).to_string()).collect();
    for name in ["Option", "Some", "None", "Result", "Ok", "String", "Send", "Future"] {
        for (at, _) in text.match_indices(name) {
            let before = text[..at].trim_end();
            let alone = !text[at + name.len()..].starts_with(char::is_alphanumeric) && !before.ends_with(char::is_alphanumeric);
            assert!(!alone || before.ends_with("::"), "{name} in {text}");
        }
    }
}

#[test]
fn the_derive_always_gives_an_impl() {
    let faults = [
        "enum E { A, #[fatal] B }",
        "struct E;",
        "union E { a: u8 }",
        "enum E<T: Clone> where T: Copy { #[retryable(inherit)] A, #[fatal] B(T) }",
        "enum E { #[retriable] A }",
        "enum E { #[retryable(after = x)] A }",
    ];
    for item in faults {
        let expansion = super::retryable_error(tokens(item)).to_string();
        assert!(expansion.contains("RetryableError for E"), "{item}: {expansion}");
    }
}

#[test]
fn keys_are_paths_that_an_editor_completes() {
    let args = r#"queue = "q", retry(max = 3, del), idempotent(store = "redis", t), bind(exchange = "x"), pre"#;
    for item in [ITEM, "fn process() {}", "async fn process(order: ) {}"] {
        let expansion = consumer(args, item).to_string();
        let mistakes = expansion.find("compile_error").unwrap();
        for path in
            ["consumer :: queue", "consumer :: pre", "retry :: max", "retry :: del", "idempotent :: t", "bind :: exchange"]
        {
            let at = expansion.find(path);
            assert!(at.is_some_and(|at| at < mistakes), "{path} at {at:?} of {expansion}");
        }
    }
}

/// Code as it is formatted.
fn formatted(code: &str) -> String {
    prettyplease::unparse(&syn::parse_file(code).unwrap())
}

#[test]
fn the_page_shows_the_expansion() {
    let page = include_str!("../../../docs/expansion.md");
    let blocks: Vec<String> = page
        .split("```")
        .filter_map(|block| block.strip_prefix("rust\n"))
        .map(|block| {
            block
                .lines()
                .filter(|line| *line != "#" && !line.starts_with("# "))
                .fold(String::new(), |text, line| text + line + "\n")
        })
        .collect();
    let (args, item) = blocks[0].split_once("#[consumer(").and_then(|(_, rest)| rest.split_once(")]\n")).unwrap();
    // The package of the macros knows mqguard by another name.
    let expansion = formatted(&consumer(args, item).to_string().replace(":: mq ::", ":: mqguard ::"));
    assert_eq!(formatted(&blocks[1]), expansion, "the page should show:\n{expansion}");
}
