//! The list of the largest events: the ordinary ones, and those that are dear to read, to hash, to search or to examine.

use super::shapes::*;

/// A line of a file, as it stands in a JSON string.
const LINE: &str = r"    return sum(item.price for item in items)  # and what the tests say of orders\n";

/// The events that agents send.
pub const ORDINARY: &[Make] = &[
    || plain("a file's text as a result", result("read_file", "", LINE, "")),
    || plain("a file's text to be written", call(r#"{"path":"a.py","content":""#, LINE, r#""}"#)),
];

/// The events that cost the most. Values are short in some, of which there are more than may be, and in others just long enough.
pub const EXTREMES: &[Make] = &[
    || plain("input: as many floats as may be", call(r#"{"a":["#, "12345.678901234567,", "0]}")),
    || plain("input: as many of the largest float", call(r#"{"a":["#, "1.797693134862e308,", "0]}")),
    || plain("input: as many keys out of order", call_with(|n| format!("\"{:030}\":0,", scrambled(n)))),
    || plain("input: as many keys, with an escape", call_with(|n| format!("\"\\u0061{:026}\":0,", scrambled(n)))),
    || plain("arguments: as many keys, with an escape", encoded_with(|n| format!("\\\"\\\\u0061{:020}\\\":0,", scrambled(n)))),
    || plain("result: as many digits", result("read_file", "[", "1               ,", "0]")),
    || {
        let piece = |n| format!(r#"{{"message":{{"function_call":{{"name":"{n:090}"}}}}}},"#);
        plain("cut off: as many older calls", cut_off_with("", piece, "0"))
    },
    || plain("cut off: as many calls", calls_cut_off(|n| format!(r#"{{"id":"{n:090}","function":{{"name":"b"}}}},"#))),
    || plain("cut off: as many calls as flagged ids", flags_other_calls()),
    || plain("cut off: as many empty calls", calls_cut_off(|_| "{               },".to_owned())),
    || under_server("policy server: as many floats", call(r#"{"a":["#, "12345.678901234567,", "0]}")),
    || under_server("policy server: as many keys, with an escape", call_with(|n| format!("\"\\u0061{:026}\":0,", scrambled(n)))),
    || under_passport("passport: as many pieces of paths", fill_paths(&format!("\"{}\"", "a/".repeat(250)), 64)),
    // Numbers are printed as Python prints them.
    || plain("input: short floats", call(r#"{"a":["#, "1e9,", "0]}")),
    || plain("input: the least float", call(r#"{"a":["#, "5e-324,", "0]}")),
    || plain("input: the largest float", call(r#"{"a":["#, "1.7976931348623157e308,", "0]}")),
    || plain("input: floats halfway between two", call(r#"{"a":["#, "9007199254740993e21,", "0]}")),
    || plain("input: floats of 800 digits", call(r#"{"a":["#, &format!("2.{}e-308,", "2250738585072011".repeat(50)), "0]}")),
    || plain("input: one float of 8 MiB", call(r#"{"a":0."#, "1234567890", "}")),
    || plain("arguments: short floats", encoded(r#"{\"a\":["#, "1e9,", "0]}")),
    || plain("result: short floats", result("read_file", "[", "1e9,", "0]")),
    || plain("result: short floats in an object of the terminal", result("terminal", r#"{\"exit_code\":0,\"a\":["#, "1e9,", "0]}")),
    // Small values and deep ones.
    || plain("input: digits", call(r#"{"a":["#, "1,", "0]}")),
    || plain("result: digits", result("read_file", "[", "1,", "0]")),
    || plain("input: empty lists", call(r#"{"a":["#, "[],", "0]}")),
    || plain("input: lists 900 deep", call(r#"{"a":["#, &format!("{}{},", "[".repeat(900), "]".repeat(900)), "0]}")),
    || {
        let piece = format!("{}0{},", r#"{"b":0,"a":"#.repeat(900), "}".repeat(900));
        plain("input: objects 900 deep, out of order", call(r#"{"a":["#, &piece, "0]}"))
    },
    // Keys are sorted.
    || plain("input: keys out of order", call_with(|n| format!("\"{}\":0,", scrambled(n)))),
    || plain("input: keys out of order, with an escape", call_with(|n| format!("\"\\u0061{}\":0,", scrambled(n)))),
    || plain("input: long keys that differ at the end", call_with(|n| format!("\"{}{}\":0,", "x".repeat(2_000), scrambled(n)))),
    || plain("input: long keys of escapes", call_with(|n| format!("\"{}{}\":0,", "\\n".repeat(1_000), scrambled(n)))),
    || plain("input: one key again and again", call("{", r#""a":0,"#, r#""b":0}"#)),
    || plain("input: one key with an escape again and again", call("{", r#""\n":0,"#, r#""b":0}"#)),
    || plain("input: objects of two keys out of order", call(r#"{"a":["#, r#"{"b":0,"a":0},"#, "0]}")),
    || plain("input: objects of two equal keys", call(r#"{"a":["#, r#"{"a":0,"a":0},"#, "0]}")),
    || plain("arguments: keys out of order, with an escape", encoded_with(|n| format!("\\\"\\\\u0061{}\\\":0,", scrambled(n)))),
    // Escapes are decoded and written.
    || plain("input: a string of escapes", call(r#"{"a":""#, r"\u0001", r#""}"#)),
    || plain("input: strings of one escape", call(r#"{"a":["#, r#""\n","#, "0]}")),
    || plain("arguments: escapes of escapes", encoded(r#"{\"a\":\""#, r"\\u0001", r#"\"}"#)),
    || plain("result: a string of escapes", result("read_file", "", r"\u0001", "")),
    // The event's own fields.
    || plain("fields that nobody knows", fill(FIELDS, r#""a":0,"#, r#""b":0}"#)),
    || plain("fields that nobody knows, with an escape", fill(FIELDS, r#""\n":0,"#, r#""b":0}"#)),
    // Why a response ended.
    || plain("response: choices with a reason", response(r#""choices":["#, r#"{"finish_reason":"stop"},"#, "0]")),
    || plain("response: choices with an escape for a reason", response(r#""choices":["#, r#"{"finish_reason":"\n"},"#, "0]")),
    || plain("response: the field of a reason again and again", response("", r#""stop_reason":"x","#, r#""a":0"#)),
    || plain("response: one reason, repeated", response(r#""choices":[{"finish_reason":""#, "content_filter", r#""}]"#)),
    || plain("error", fill(r#"{"type":"model_response","thread_id":"t","error":{"a":["#, "1e9,", "0]}}")),
    // The calls of a response that was cut off.
    || plain("cut off: calls of one id", calls_cut_off(|_| r#"{"id":"a","function":{"name":"b"}},"#.to_owned())),
    || plain("cut off: calls of many ids", calls_cut_off(|n| format!(r#"{{"id":"{n}","function":{{"name":"b"}}}},"#))),
    || plain("cut off: calls of many names", calls_cut_off(|n| format!(r#"{{"function":{{"name":"{n}"}}}},"#))),
    || plain("cut off: empty calls", calls_cut_off(|_| "{},".to_owned())),
    || {
        let piece = |n| format!(r#"{{"message":{{"function_call":{{"name":"{n}"}}}}}},"#);
        plain("cut off: older calls of many names", cut_off_with("", piece, "0"))
    },
    || plain("cut off: blocks of text", response(r#""stop_reason":"refusal","content":["#, r#"{"text":" "},"#, "0]")),
    || {
        let head = r#""candidates":[{"finishReason":"SAFETY","content":{"parts":["#;
        plain("cut off: parts of Gemini", response(head, r#"{"functionCall":{"id":"a"}},"#, "0]}}]"))
    },
    || plain("cut off: calls of a LangChain message", fill(&format!(r#"{MESSAGE}"tool_calls":["#), r#"{"id":"a"},"#, "0]}}")),
    // What is examined.
    || under_passport("passport: 8 MiB of paths", fill(PATHS, r#""a","#, r#""a"]}}"#)),
    || under_passport("passport: 1 MiB of paths", fill_examined(PATHS, r#""a","#, r#""a""#)),
    || under_passport("passport: 1 MiB of paths that climb", fill_examined(PATHS, r#""a/../b/./c//d","#, r#""a""#)),
    || under_passport("passport: 1 MiB of long paths", fill_examined(PATHS, &format!("\"{}\",", "a/".repeat(250)), r#""a""#)),
    || under_server("policy server: short floats", call(r#"{"a":["#, "1e9,", "0]}")),
    || under_server("policy server: objects of two keys", call(r#"{"a":["#, r#"{"b":0,"a":0},"#, "0]}")),
];
