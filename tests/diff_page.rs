//! Opens the page of `tollgate diff --html` in a real browser, and measures what it draws.

use std::fmt::Write as _;
use std::process::Command;

use crate::support::{run, tollgate};
use serde_json::{Value, json};

/// A script at the end of the page that says in the title what is drawn.
const PROBE: &str = r"<script>
const boxes = selector => [...document.querySelectorAll(selector)].map(found => found.getBoundingClientRect());
const tools = [...document.querySelectorAll('h2')].find(head => head.textContent === 'Tools').nextSibling;
const seen = {
  flips: document.querySelector('#flips').textContent,
  times: boxes('#times rect').map(box => [Math.round(box.width), Math.round(box.height)]),
  bars: boxes('#changes rect').map(box => Math.round(box.width)),
  overflow: document.documentElement.scrollWidth > document.documentElement.clientWidth,
  scripts: document.scripts.length, images: document.images.length, injected: typeof window.injected,
  others: performance.getEntriesByType('resource').length,
  tool: tools.rows[1].cells[0].textContent,
};
document.title = JSON.stringify(seen);
</script></body>";

/// Calls of a tool whose name is markup, which the second policy denies, over ten minutes.
fn capture() -> String {
    let mut lines = String::new();
    for at in 0..200 {
        let tool = if at % 4 == 3 { "<img src=x onerror='injected=1'>" } else { "ls" };
        let call = json!({"type": "tool_call", "event_id": format!("e{at}"), "thread_id": format!("t{at}"), "tool_call_id": "c", "tool_name": tool,
            "tool_input": {}, "timestamp": format!("2026-01-01T00:{:02}:{:02}Z", at / 20, at % 20 * 3)});
        writeln!(lines, "{call}").unwrap();
    }
    lines
}

#[test]
fn a_browser_draws_what_was_counted() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("capture.jsonl", &capture());
    write("b.yaml", r#"guardrails: {enabled: true, provider: {use: allowlist, config: {allowed_tools: [ls]}}}"#);
    let ran = run(tollgate().args(["diff", "--policy", "b.yaml", "capture.jsonl", "--html", "page.html"]).current_dir(folder.path()), b"");
    assert_eq!((ran.exit, ran.stderr.as_str()), (Some(0), ""));
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    write("probe.html", &page.replace("</body>", PROBE));
    let profile = format!("--user-data-dir={}", folder.path().join("profile").display());
    let url = format!("file://{}", folder.path().join("probe.html").display());
    let mut browser = Command::new("chromium");
    browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]);
    let seen = run(browser.args([&profile, "--window-size=1100,1500", "--timeout=120000", "--dump-dom", &url]), b"");
    let title = seen.stdout.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
    let title = title.unwrap_or_else(|| panic!("no title: {seen:?}")).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let page: Value = serde_json::from_str(&title).unwrap_or_else(|error| panic!("{error}: {title}"));
    assert_eq!(page["flips"], "50", "{page:#}");
    assert_eq!(page["tool"], "<img src=x onerror='injected=1'>", "{page:#}");
    // The only script is the probe, and nothing else was loaded.
    for (name, expected) in
        [("scripts", json!(1)), ("images", json!(0)), ("injected", json!("undefined")), ("overflow", json!(false)), ("others", json!(0))]
    {
        assert_eq!(page[name], expected, "{name}: {page:#}");
    }
    let times = page["times"].as_array().unwrap();
    assert_eq!(times.len(), 10, "{page:#}");
    assert!(times.iter().all(|size| size[0].as_i64() > Some(20) && size[1].as_i64() > Some(50)), "{page:#}");
    assert!(page["bars"][0].as_i64() > Some(150), "{page:#}");
}
