//! Requests that are wrong, slow or meant to harm. Each is refused by name, and the server goes on.

use std::io::Write as _;
use std::net::TcpStream;

use serde_json::json;

use super::{Dev, call};

#[test]
fn each_fault_of_a_request_is_named() {
    let dev = Dev::start();
    let client = &dev.client;
    let good = call("t", "c", "ls");
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let many = format!("[{}]", vec![good.as_str(); 257].join(","));
    let with_input =
        |input: &str| format!(r#"{{"type":"tool_call","thread_id":"t","tool_call_id":"c","tool_name":"ls","tool_input":{input}}}"#);
    let deep_input = with_input(&format!("{}0{}", r#"{"a":"#.repeat(1_000_000), "}".repeat(1_000_000)));
    let broad_input = with_input(&format!("[{}0]", "0,".repeat(600_000)));
    let bodies = [
        ("", 400, "value_not_json", "body: is empty"),
        ("7", 400, "value_not_an_object", "send one JSON object"),
        ("[]", 400, "events_out_of_bounds", "1 to 256"),
        (&many, 400, "events_out_of_bounds", "257"),
        (&deep, 400, "value_not_an_object", "no JSON object"),
        (r#"{"type":"tool_call","thread_id":"t","tool_call_id":"c"}"#, 400, "tool_name_missing", "tool_name"),
        (r#"{"type":"tool_call","thread_id":"t","thread_id":"u"}"#, 400, "field_repeated", "thread_id"),
        (&deep_input, 400, "value_too_deep", ""),
        (&broad_input, 400, "value_too_many_values", ""),
        (r#"{"type":"thread_reset","thread_id":"t"}"#, 403, "type_not_allowed", "tollgate state reset"),
    ];
    for (body, status, code, words) in bodies {
        let answer = client.events(body);
        let shown = &body[..body.len().min(60)];
        assert_eq!((answer.status, &answer.json()["code"]), (status, &json!(code)), "{shown}: {answer:?}");
        assert!(answer.json()["message"].as_str().unwrap().contains(words), "{shown}: {answer:?}");
        assert_eq!(answer.json()["allows_execution"], false, "{shown}");
    }
    let of_headers = |headers: &[&str]| client.post("/v1/events", headers, &good);
    assert_eq!(of_headers(&["prefer: wait=soon"]).json()["code"], "wait_invalid");
    assert_eq!(of_headers(&["prefer: wait=0"]).json()["code"], "wait_invalid");
    assert_eq!(of_headers(&["origin: http://localhost"]).status, 403);
    assert_eq!(of_headers(&["host: gate.example.org"]).json()["code"], "host_not_allowed");
    assert_eq!(of_headers(&["idempotency-key: "]).json()["code"], "idempotency_key_invalid");
    for media in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp", ""] {
        let form = format!("POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: {media}\r\ncontent-length: 2\r\n\r\n{{}}");
        assert_eq!(client.send(&form).json()["code"], "content_type_unknown", "{media}");
    }
    assert_eq!(of_headers(&["content-type: application/json"]).json()["code"], "header_repeated");
    assert_eq!(of_headers(&["content-encoding: gzip"]).json()["code"], "body_unreadable");
    assert_eq!((client.get("/v1/events").status, client.get("/").status), (405, 404));
    assert_eq!(client.events(&good).json()["action"], "allow", "the server goes on");
}

#[test]
fn what_is_too_large_is_refused() {
    let dev = Dev::start();
    let client = &dev.client;
    let large = format!("{{\"type\":\"{}\"}}", "x".repeat(9 << 20));
    assert_eq!(client.events(&large).json()["code"], "body_too_large");
    let headers: String = (0..10_000).map(|number| format!("x-{number}: y\r\n")).collect();
    let many = client.send(&format!("GET / HTTP/1.1\r\nhost: {}\r\n{headers}\r\n", client.address));
    assert_eq!(many.status, 431, "{many:?}");
    let bomb = {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packer.write_all(&vec![b' '; 64 << 20]).unwrap();
        packer.finish().unwrap()
    };
    let head = format!(
        "POST /v1/events HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        client.address,
        bomb.len()
    );
    let answer = client.exchange(&[head.as_bytes(), &bomb].concat(), 1).pop().unwrap();
    assert_eq!((answer.status, &answer.json()["code"]), (413, &json!("body_too_large")));
}

#[test]
fn requests_on_a_connection_are_answered_in_their_order() {
    let dev = Dev::start();
    let client = &dev.client;
    let request = |body: &str| {
        let length = body.len();
        format!(
            "POST /v1/events HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}",
            client.address
        )
    };
    let both = request(&call("t", "c1", "bash")) + &request(&call("t", "c2", "ls"));
    let answers: Vec<_> = client.exchange(both.as_bytes(), 2).iter().map(|answer| answer.json()["action"].clone()).collect();
    assert_eq!(answers, ["block", "allow"]);
}

#[test]
fn a_client_that_goes_away_leaves_nothing_behind() {
    let dev = Dev::start();
    let client = &dev.client;
    for _ in 0..50 {
        let mut stream = TcpStream::connect(&client.address).unwrap();
        let _sent = stream.write_all(b"POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{\"type\"");
    }
    let mut slow = TcpStream::connect(&client.address).unwrap();
    slow.write_all(b"POST /v1/ev").unwrap();
    assert_eq!(client.events(&call("t", "c", "ls")).json()["action"], "allow");
}

/// A request that ends at another place for another reader is followed by a request that only this server would see. It is not answered.
#[test]
fn nothing_hides_behind_a_request_that_can_be_read_in_two_ways() {
    let dev = Dev::start();
    let framed = [
        "content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
        "content-length: 2\r\ncontent-length: 3\r\n\r\n{} ",
        "content-length: 2, 2\r\n\r\n{}",
        "content-length: +2\r\n\r\n{}",
        "content-length: 0x2\r\n\r\n{}",
        "content-length: -2\r\n\r\n{}",
        "content-length : 2\r\n\r\n{}",
        "transfer-encoding: identity\r\n\r\n{}",
        "transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "transfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
        "transfer-encoding : chunked\r\n\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "transfer-encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\n2\n{}\n0\n\n",
        "x-folded: a\r\n content-length: 2\r\n\r\n{}",
        "x: a\rcontent-length: 2\r\n\r\n{}",
        "x: a\0\r\ncontent-length: 2\r\n\r\n{}",
    ];
    let smuggled = "GET /smuggled HTTP/1.1\r\nhost: localhost\r\n\r\n";
    for headers in framed {
        let head = "POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
        let got = dev.client.until_closed(format!("{head}{headers}{smuggled}").as_bytes());
        assert!(got.starts_with("HTTP/1.1 400 ") && got.matches("HTTP/1.1 ").count() == 1, "{headers:?}: {got:?}");
    }
    for head in ["POST /v1/events HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", "GET /  HTTP/1.1\r\n\r\n", "\0\r\n\r\n"] {
        let got = dev.client.until_closed(format!("{head}{smuggled}").as_bytes());
        assert!(got.starts_with("HTTP/1.1 400 ") && got.matches("HTTP/1.1 ").count() == 1, "{head:?}: {got:?}");
    }
    let two_hosts = "POST /v1/events HTTP/1.1\r\nhost: localhost\r\nhost: gate.example.org\r\ncontent-length: 2\r\n\r\n{}";
    assert_eq!(dev.client.send(two_hosts).json()["code"], "header_repeated");
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    let dev = Dev::start();
    let head = "POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    let got = dev.client.until_closed(head.as_bytes());
    assert!(got.starts_with("HTTP/1.1 408 ") && got.contains("body_too_slow"), "{got}");
}
