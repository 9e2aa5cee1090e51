#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

fn unfiltered() -> Listed {
    Listed::through(ToolFilter::default(), usize::MAX)
}

#[test]
fn a_malformed_tool_costs_itself_alone() {
    let mut list = unfiltered();
    let page = r#"{"tools":[{"name":"a","inputSchema":{"x":1e400}},7,{"inputSchema":{}},{"name":"b"},
        {"name":"c","inputSchema":null},{"name":"d","inputSchema":true},{"name":"a","inputSchema":{}}]}"#;
    assert_eq!(list.add(page).unwrap(), None);
    assert_eq!(list.json, r#"[{"name":"a","inputSchema":{"x":1e400}},{"name":"d","inputSchema":true}"#);
    assert_eq!(list.oddities.len(), 5);
}

#[test]
fn oddities_without_number_are_counted_and_not_kept() {
    let mut list = unfiltered();
    list.add(&format!(r#"{{"tools":[{}7]}}"#, "7,".repeat(999))).unwrap();
    assert_eq!((list.oddities.len(), list.untold), (ODDITIES_MAX, 1000 - ODDITIES_MAX));
}

#[test]
fn a_repeated_page_ends_the_list_and_a_repeated_cursor_does_not() {
    let mut list = unfiltered();
    let page =
        |name: &str| format!(r#"{{"tools":[{{"name":"{name}","inputSchema":{{}}}}],"nextCursor":""}}"#);
    assert_eq!(list.add(&page("a")).unwrap().as_deref(), Some("\"\""));
    assert_eq!(list.add(&page("b")).unwrap().as_deref(), Some("\"\""));
    assert_eq!(list.add(&page("a")).unwrap(), None);
    assert_eq!(list.names.len(), 2);
}

#[test]
fn the_limit_applies_after_the_filter_and_counts_what_was_listed() {
    let tools: Vec<_> =
        (0..300).map(|index| format!(r#"{{"name":"t{index}","inputSchema":{{}}}}"#)).collect();
    let page = format!(r#"{{"tools":[{}]}}"#, tools.join(","));
    let error = unfiltered().add(&page).unwrap_err();
    assert_eq!((error.code, error.detail("count")), (ErrorCode::TooManyTools, Some(&300.into())));
    let filter = ToolFilter { include: Some(vec!["t299".into()]), exclude: None };
    let mut list = Listed::through(filter, usize::MAX);
    list.add(&page).unwrap();
    assert_eq!(list.names.len(), 1);
}

#[test]
fn all_pages_together_hold_no_more_than_one_message_may() {
    let mut list = Listed::through(ToolFilter::default(), 200);
    let page = |name: &str| {
        let tool = format!(r#"{{"name":"{name}","description":"{}","inputSchema":{{}}}}"#, "x".repeat(60));
        format!(r#"{{"tools":[{tool}],"nextCursor":"{name}"}}"#)
    };
    assert_eq!(list.add(&page("a")).unwrap().as_deref(), Some("\"a\""));
    assert!(list.page().is_some());
    let error = list.add(&page("b")).unwrap_err();
    assert_eq!((error.code, error.detail("limit")), (ErrorCode::MessageTooLarge, Some(&200.into())));
}

#[test]
fn pages_are_handed_on_without_what_came_before() {
    let mut list = unfiltered();
    let page = |names: &[&str]| {
        let tools: Vec<_> =
            names.iter().map(|name| format!(r#"{{"name":"{name}","inputSchema":{{}}}}"#)).collect();
        format!(r#"{{"tools":[{}],"nextCursor":"n"}}"#, tools.join(","))
    };
    list.add(&page(&["a", "b"])).unwrap();
    let first = list.page().unwrap();
    assert!(first.starts_with(r#"[{"name":"a""#) && first.ends_with("}]"), "{first}");
    list.add(&page(&[])).unwrap();
    assert_eq!(list.page(), None, "an empty page");
    list.add(&page(&["b"])).unwrap();
    assert_eq!((list.page(), list.oddities.len()), (None, 1), "the same tool again");
    list.add(&page(&["c"])).unwrap();
    assert_eq!(list.page().unwrap(), r#"[{"name":"c","inputSchema":{}}]"#);
}

#[tokio::test]
async fn a_large_page_is_read_beside_the_io_thread_and_is_the_same_list() {
    let page = format!(
        r#"{{"tools":[{{"name":"a","inputSchema":{{"x":"{}"}}}}],"nextCursor":"n"}}"#,
        "x".repeat(POOL_FROM)
    );
    let (list, cursor) = unfiltered().with(page).await.unwrap();
    assert_eq!((list.names.len(), cursor.as_deref()), (1, Some("\"n\"")));
}
