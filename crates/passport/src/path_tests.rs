//! Tests of paths and of sets of places.

use super::*;

fn normal(path: &str) -> (String, bool) {
    let path = NormalPath::new(path);
    (path.text, path.climbs)
}

#[test]
fn paths_are_normalised_by_their_text() {
    for (path, text, climbs) in [
        ("/tmp//a/./b/", "/tmp/a/b", false),
        ("/tmp/../etc/passwd", "/etc/passwd", false),
        ("/../../etc", "/etc", false),
        ("/", "/", false),
        ("a/../b", "b", false),
        ("../b", "b", true),
        (".", ".", false),
        ("", ".", false),
        ("~/a/../b", "~/b", false),
        ("~/../b", "~/b", true),
        ("~bob/x", "~bob/x", false),
        ("./~", "./~", false),
        ("/var/run/../x", "/var/x", true),
        ("~", "~", false),
    ] {
        assert_eq!(normal(path), (text.to_owned(), climbs), "{path}");
    }
    assert_eq!(NormalPath::new("/a/b.txt").name(), "b.txt");
    assert_eq!(NormalPath::new("~").name(), "");
    assert_eq!(NormalPath::new("/").name(), "");
}

fn find(purpose: Purpose, entry: &str, path: &str) -> bool {
    PathSet::new(vec![entry.to_owned()], purpose, "p").unwrap().find(&NormalPath::new(path)).is_some()
}

#[test]
fn allowed_places_hold_what_is_surely_in_them() {
    for (entry, path, expected) in [
        ("/tmp/", "/tmp/a/b", true),
        ("/tmp", "/tmp", true),
        ("/tmp", "/tmpx/a", false),
        ("/tmp", "/tmp/../etc/passwd", false),
        ("/tmp", "a", false),
        ("/tmp", "../tmp/a", false),
        ("/work/*", "/work/a", true),
        ("/work/*", "/work/a/b", false),
        ("/work/**", "/work/a/b", true),
        ("/", "/etc/passwd", true),
        ("/", "etc/passwd", false),
        (".", "a/b", true),
        (".", "../a", false),
        ("src", "src/a", true),
        ("src", "/x/src/a", false),
        ("~/work", "~/work/a", true),
        ("~/work", "~/work/../a", false),
        ("~", "~/../a", false),
        ("*", "/anything/at/all", true),
        ("*", "../x", true),
        ("/Tmp", "/tmp/a", false),
        ("/work", "/work/a/../b", true),
        ("/work", "/usr/../work/b", false),
        ("/work/**", "/work/a/../../work/b", false),
        ("/var", "/var/run/x", false),
        ("/var", "/var/running", true),
        ("/var/run", "/var/run/x", true),
        ("/var", "/var/run/..", false),
        ("/etc", "/etc/mtab", false),
        ("/bin", "/bin/../bin/ls", false),
        ("/var", "/var/run/x/../..", false),
        ("~", "./~", false),
        ("~", "./~/x", false),
        ("./~", "./~/x", true),
        ("./~", "~/x", false),
        ("/", "/var/run/x", true),
        ("../x", "x", false),
    ] {
        assert_eq!(find(Purpose::Allow, entry, path), expected, "{entry} {path}");
    }
}

#[test]
fn blocked_places_hold_what_may_be_in_them() {
    for (entry, path, expected) in [
        ("/etc/", "/etc/hosts", true),
        ("/etc/", "/ETC/hosts", true),
        ("/etc/", "etc/hosts", true),
        ("/etc/", "a/etc/hosts", false),
        ("/work/secret", "secret/x", true),
        ("/work/secret", "a/secret/x", false),
        ("/work/*/keys", "a/keys/x", true),
        ("~/.config/gh", "gh/x", true),
        ("/usr/bin", "/bin/ls", true),
        ("/run/x", "/var/run/x", true),
        ("/proc", "/etc/mtab", true),
        ("/etc", "/private/etc/hosts", true),
        ("/etc/hosts", "/var/run/../etc/hosts", true),
        ("/etc/hosts", "/a/../b/../etc/x/../hosts", true),
        ("/etc/", "/etcx", false),
        ("/etc/*.conf", "/etc/x.conf/y", true),
        (".ssh", "/home/u/.ssh/id", true),
        ("*.pem", "/a/b/c.pem", true),
        ("*.pem", "C.PEM", true),
        ("secrets/prod", "/repo/secrets/prod/x", true),
        ("secrets/prod", "/repo/secrets/test/x", false),
        ("secrets/prod", "prod/x", true),
        ("**/.ssh/**", "x", false),
        ("/work/*", "x", false),
        ("secrets/prod", "a/prod/x", false),
        ("**/.ssh/**", "~/.ssh/id", true),
        ("/home/u/.config", "~/.config/x", true),
        ("/root/.config", "~/.config/x", true),
        ("~/.config", "/home/u/.config/x", true),
        ("~/.config", "/root/.config", true),
        ("/home", "~/x", true),
        ("/home/u", "~/x", true),
        ("/root", "~", true),
        ("/", "~/x", true),
        ("/home/u/a", "~/x", false),
        ("~/.config", "~bob/x", false),
    ] {
        assert_eq!(find(Purpose::Block, entry, path), expected, "{entry} {path}");
    }
}

#[test]
fn wildcards_that_are_not_supported_are_refused() {
    for entry in ["/a/[x]", "{a,b}", "!x", "a\\b"] {
        assert!(PathSet::new(vec![entry.to_owned()], Purpose::Allow, "p").is_err(), "{entry}");
    }
}

#[test]
fn an_entry_that_is_the_path_of_nothing_is_refused() {
    for entry in ["$HOME/app", "${X}/y", " /srv", "C:/work", "/a|/b"] {
        for purpose in [Purpose::Allow, Purpose::Block] {
            assert!(PathSet::new(vec![entry.to_owned()], purpose, "p").is_err(), "{entry}");
        }
    }
}

/// The places that such an entry blocks would be 6 GB.
#[test]
fn an_entry_with_more_components_than_any_path_is_refused() {
    for purpose in [Purpose::Allow, Purpose::Block] {
        let refused = |entry: String| PathSet::new(vec![entry], purpose, "p").is_err();
        assert!(refused("/a".repeat(64)) && refused("a".repeat(1_025)));
        assert!(!refused("/a".repeat(63)) && !refused("a".repeat(1_024)));
    }
}
