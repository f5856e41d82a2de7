#![doc = include_str!("../README.md")]

use proc_macro::{TokenStream, TokenTree};

/// Registers a function as a test of its program: see the README of `leasehold-testkit`.
#[proc_macro_attribute]
pub fn test(words: TokenStream, function: TokenStream) -> TokenStream {
    let tokens: Vec<TokenTree> = function.clone().into_iter().collect();
    let is = |token: &TokenTree, word: &str| matches!(token, TokenTree::Ident(name) if name.to_string() == word);
    let after_fn = tokens.iter().skip_while(|token| !is(token, "fn")).nth(1);
    let Some(TokenTree::Ident(name)) = after_fn else {
        return "compile_error! { \"a test is a function\" }".parse().unwrap_or_default();
    };
    // A function that is left out of a build is not registered there either.
    let conditions: Vec<String> = tokens
        .windows(2)
        .take_while(|pair| !is(&pair[0], "fn"))
        .filter(|pair| pair[0].to_string() == "#" && pair[1].to_string().starts_with("[cfg"))
        .map(|pair| format!("#{}", pair[1]))
        .collect();
    let registration = format!("{} ::leasehold_testkit::registered! {{ {name} {words} }}", conditions.concat());
    function.into_iter().chain(registration.parse::<TokenStream>().unwrap_or_default()).collect()
}
