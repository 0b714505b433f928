//! Makes URLs: by a grammar with slips in it, and by changing such.

use crate::random::Random;

const SCHEMES: [&str; 8] = ["https", "http", "HTTP", "hTtPs", "https", "http", "ftp", "httpx"];
const BEGINNINGS: [&str; 12] = ["://", "://", "://", "://", "://", "://", "://", ":/", ":///", ":", ":\\\\", "://@"];
const USERS: [&str; 10] = ["user@", "user:pass@", "@", ":@", "example.com@", "example.com:80@", "a%40b@", "x@y@", "[@", "#@"];
#[rustfmt::skip]
const NAMES: [&str; 26] = [
    "example.com", "example.org", "a.example.org", "WWW.Example.COM", "example.com.", "example.com..", "8.8.8.8", "134744072",
    "0x8.8.8.8", "010.8.8.8", "8.8.2056", "[2606:4700::1111]", "[::ffff:8.8.8.8]", "[2606:4700:0:0:0:0:0:1111]", "xn--mnchen-3ya.de",
    "xn--p1ai", "a.xn--p1ai", "xn--a.com", "evil.io", "a_b.com", "-a.com", "a-.com", "a--b.com", "127.0.0.1", "169.254.169.254",
    "metadata.goog",
];
const LABELS: [&str; 20] =
    ["a", "www", "example", "com", "org", "xn--", "0x7f", "127", "1", "08", "09", "0", "00", "x_", "_x", "-", "a-b", "1e3", "0xg", "io"];
const PORTS: [&str; 12] = [":80", ":443", ":8080", ":", ":0", ":65535", ":65536", ":0080", ":00000000000080", ":+80", ":80:80", ":8O"];
#[rustfmt::skip]
const PATHS: [&str; 22] = [
    "/", "/a/b", "/../x", "//evil.io", "/%2e%2e/", "/@evil.io", "/a:b", "/\u{e4}", "/;x", "/http://evil.io/", "/\\evil.io", "/[x]",
    "/{a,b}", "/%", "/%zz", "/%00", "/|", "/^", "/\"", "/<>", "/`", "/a'b",
];
const QUERIES: [&str; 10] = ["?", "?a=b", "?x@evil.io", "?u=http://evil.io/", "?a:b", "?//", "?#", "?[", "?%", "?\u{1f600}"];
const FRAGMENTS: [&str; 6] = ["#", "#a", "#@evil.io", "##", "#//evil.io", "#:80"];

/// What is put into URLs where it may hurt.
#[rustfmt::skip]
const PIECES: [&str; 62] = [
    "@", ":", "/", "\\", "?", "#", "%", "[", "]", ".", "..", "-", "_", "&", "=", "+", ";", ",", "'", "\"", "`", "<", ">", "{", "}", "|",
    "^", "~", "!", "$", "*", "(", ")", " ", "\t", "\n", "\r", "\0", "\u{7f}", "\u{a0}", "\u{ad}", "\u{200b}", "\u{3002}", "\u{ff0e}",
    "\u{ff0f}", "\u{2044}", "\u{fe0f}", "\u{130}", "\u{df}", "\u{e4}", "\u{1f600}", "\u{ff41}", "\u{2488}", "%2f", "%40", "%00", "%2e",
    "%5c", "evil.io", "xn--", "0", "http://",
];

/// Returns a URL, or something like it.
pub(super) fn url(random: &mut Random) -> String {
    let made = by_grammar(random);
    if random.chance(40) { random.mutate(&made, &PIECES) } else { made }
}

fn by_grammar(random: &mut Random) -> String {
    let mut made = random.pick(&SCHEMES).to_owned() + random.pick(&BEGINNINGS);
    if random.chance(10) {
        made += random.pick(&USERS);
    }
    if random.chance(60) {
        made += random.pick(&NAMES);
    } else {
        let labels: Vec<&str> = (0..=random.below(5)).map(|_| random.pick(&LABELS)).collect();
        made += &labels.join(".");
        if random.chance(40) {
            made += ".com";
        }
    }
    for (percent, parts) in [(25, PORTS.as_slice()), (60, &PATHS), (30, &QUERIES), (20, &FRAGMENTS)] {
        if random.chance(percent) {
            made += random.pick(parts);
        }
    }
    if random.chance(10) {
        made += random.pick(&PIECES);
    }
    made
}
