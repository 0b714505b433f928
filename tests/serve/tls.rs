//! Tests TLS by files, with curl as the client: versions of HTTP, certificates of clients, files that change, files that are wrong, and
//! handshakes that never end.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use tollgate_json::digest::Digest;
use tollgate_testkit::wait_until;

use super::certificates::Identity;
use super::servers::{serve, started};
use super::{Dev, call, with};
use crate::support::{run, temporary, tollgate};

const TOKEN: &str = "s3cret-token";

/// The files of a server and its clients.
struct Files {
    folder: tempfile::TempDir,
    authority: Identity,
}

impl Files {
    /// Writes the certificate of a server, and a file of callers who show a token or a certificate.
    fn new() -> Self {
        let files = Self { folder: tempfile::tempdir().unwrap(), authority: Identity::authority("servers").unwrap() };
        files.put("server", &files.authority.issue(&[("CN", "gate")], &["127.0.0.1", "localhost"], -1, 30).unwrap());
        files.write("ca.pem", &files.authority.certificate().unwrap());
        let tokens = json!({"tokens": [
            {"name": "ci", "sha256": Digest::of(TOKEN.as_bytes()).to_string(), "tenant": "of-token"},
            {"name": "build", "certificate": "URI:spiffe://example.org/build", "tenant": "of-certificate", "agents": ["build-*"]},
        ]});
        files.write("tokens.yaml", &tokens.to_string());
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Writes a certificate and its key.
    fn put(&self, name: &str, identity: &Identity) {
        self.write(&format!("{name}.pem"), &identity.certificate().unwrap());
        self.write(&format!("{name}.key"), &identity.key().unwrap());
    }

    /// Returns a configuration with these files, and with more members of `serve`.
    fn config(&self, more: Value) -> tempfile::NamedTempFile {
        let mut serve = json!({"tokens": self.path("tokens.yaml"), "tls": {
            "certificate_file": self.path("server.pem"), "key_file": self.path("server.key"), "client_ca_file": self.path("clients.pem"),
        }});
        serve.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        temporary(&json!({"serve": serve}).to_string())
    }

    /// Asks with curl, and returns its exit code, the version of HTTP, the status and the body.
    fn curl(&self, address: &str, arguments: &[&str], event: &str) -> CurlAnswer {
        let mut command = Command::new("curl");
        command.args(["-sS", "--noproxy", "*", "--max-time", "60", "-w", "\n%{http_version} %{response_code}"]);
        command.args(["--cacert"]).arg(self.path("ca.pem")).args(arguments);
        command.args(["-H", "content-type: application/json", "-d", event]).arg(format!("https://{address}/v1/events"));
        let ran = run(&mut command, b"");
        let (body, end) = ran.stdout.rsplit_once('\n').unwrap_or_default();
        let (version, status) = end.split_once(' ').unwrap_or_default();
        CurlAnswer {
            exit: ran.exit,
            version: version.to_owned(),
            status: status.to_owned(),
            body: serde_json::from_str(body).unwrap_or_default(),
        }
    }

    /// Asks as the client who has this certificate.
    fn curl_as(&self, name: &str, address: &str, arguments: &[&str], event: &str) -> CurlAnswer {
        let (certificate, key) = (self.path(&format!("{name}.pem")), self.path(&format!("{name}.key")));
        let identity = ["--cert", certificate.to_str().unwrap(), "--key", key.to_str().unwrap()];
        self.curl(address, &[&identity, arguments].concat(), event)
    }
}

/// What curl says.
#[derive(Debug)]
struct CurlAnswer {
    exit: Option<i32>,
    version: String,
    status: String,
    body: Value,
}

impl CurlAnswer {
    /// Returns the status and the action or the code.
    fn short(&self) -> (&str, &str) {
        let word = if self.status == "200" { &self.body["action"] } else { &self.body["code"] };
        (&self.status, word.as_str().unwrap_or_default())
    }
}

fn event() -> String {
    with(&call("t", "c", "ls"), "agent_id", "build-7")
}

const BEARER: [&str; 2] = ["-H", "authorization: Bearer s3cret-token"];

#[test]
fn curl_and_the_hook_ask_over_tls() {
    let (dev, files) = (Dev::start(), Files::new());
    files.write("clients.pem", &files.authority.certificate().unwrap());
    let (server, client) = started(&mut serve(&dev, 1, &files.config(json!({}))));
    let address = &client.address;
    for (version, arguments) in [("2", &[][..]), ("1.1", &["--http1.1"][..]), ("2", &["--tls-max", "1.2"])] {
        let said = files.curl(address, &[&BEARER[..], arguments].concat(), &event());
        assert_eq!((said.short(), said.version.as_str()), (("200", "allow"), version), "{arguments:?}: {said:?}");
        assert_eq!(said.body["tenant_id"], "of-token");
    }
    assert_eq!(files.curl(address, &[], &event()).short(), ("401", "unauthorized"), "a client needs no certificate, and then a token");
    let other = files.path("other.pem");
    std::fs::write(&other, Identity::authority("other").unwrap().certificate().unwrap()).unwrap();
    let distrusts = files.curl(address, &["--cacert", other.to_str().unwrap()], &event());
    assert_eq!(distrusts.exit, Some(60), "{distrusts:?}");
    let old = files.curl(address, &["--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0"], &event());
    assert_eq!(old.exit, Some(35), "{old:?}");
    assert!(!server.said().contains(TOKEN), "{}", server.said());

    files.write("token", TOKEN);
    let url = format!("https://{address}");
    let hook = |more: &[&str]| {
        let request = json!({"hook_event_name": "PreToolUse", "session_id": "s", "prompt_id": "p", "cwd": "/", "tool_name": "bash",
            "tool_input": {"command": "ls"}, "tool_use_id": "u"});
        let mut command = tollgate();
        command.args(["hook", "--host", "claude-code", "--timeout", "60000", "--url", &url, "--token-file"]).arg(files.path("token"));
        run(command.args(more), request.to_string().as_bytes())
    };
    let denied = hook(&["--ca-file", files.path("ca.pem").to_str().unwrap()]);
    assert_eq!(denied.json_lines()[0]["hookSpecificOutput"]["permissionDecision"], "deny", "{denied:?}");
    let distrusts = hook(&["--ca-file", other.to_str().unwrap()]);
    assert_eq!((distrusts.exit, distrusts.stdout.as_str()), (Some(2), ""), "{distrusts:?}");
    assert!(distrusts.stderr.contains("certificate was refused"), "{distrusts:?}");
}

#[test]
fn certificates_of_clients_name_callers() {
    let (dev, files) = (Dev::start(), Files::new());
    let clients = Identity::authority("clients").unwrap();
    files.write("clients.pem", &clients.certificate().unwrap());
    let issue = |name: &str, names: &[&str], to: i64| files.put(name, &clients.issue(&[("CN", name)], names, -3, to).unwrap());
    issue("build", &["spiffe://example.org/build", "build.example.org"], 30);
    issue("nobody", &["spiffe://example.org/nobody"], 30);
    issue("nameless", &[], 30);
    issue("expired", &["spiffe://example.org/build"], -1);
    files.put("forged", &files.authority.issue(&[("CN", "build")], &["spiffe://example.org/build"], -1, 30).unwrap());
    let (_server, client) = started(&mut serve(&dev, 1, &files.config(json!({}))));
    let address = &client.address;

    let said = files.curl_as("build", address, &[], &event());
    assert_eq!((said.short(), &said.body["tenant_id"]), (("200", "allow"), &json!("of-certificate")), "{said:?}");
    let other_agent = files.curl_as("build", address, &[], &with(&event(), "agent_id", "deploy"));
    assert_eq!(other_agent.short(), ("403", "agent_not_allowed"));
    assert_eq!(files.curl_as("build", address, &BEARER, &event()).short(), ("401", "two_callers"));
    for name in ["nobody", "nameless"] {
        assert_eq!(files.curl_as(name, address, &[], &event()).short(), ("401", "unauthorized"), "{name}");
        assert_eq!(files.curl_as(name, address, &BEARER, &event()).short(), ("200", "allow"), "{name}: the token names the caller");
    }
    for name in ["expired", "forged"] {
        let refused = files.curl_as(name, address, &BEARER, &event());
        assert!(refused.exit != Some(0) && refused.status == "000", "{name}: {refused:?}");
    }
}

#[test]
fn changed_files_are_in_force_without_a_restart() {
    let (dev, files) = (Dev::start(), Files::new());
    files.write("clients.pem", &files.authority.certificate().unwrap());
    let (server, client) = started(&mut serve(&dev, 1, &files.config(json!({}))));
    let asked = || files.curl(&client.address, &BEARER, &event());
    assert_eq!(asked().short(), ("200", "allow"));

    files.write("server.key", "no key");
    server.line(&["the changed certificates of TLS cannot be used", "serve.tls.key_file: found no PEM"]);
    assert_eq!(asked().short(), ("200", "allow"), "the certificate before is in force");

    let next = Identity::authority("next").unwrap();
    files.put("server", &next.issue(&[("CN", "gate")], &["127.0.0.1"], -1, 30).unwrap());
    files.write("ca.pem", &next.certificate().unwrap());
    wait_until("the changed certificate is in force", || Ok(asked().short() == ("200", "allow"))).unwrap();

    files.put("server", &next.issue(&[("CN", "gate")], &["127.0.0.1"], -2, -1).unwrap());
    server.line(&["the changed certificates of TLS cannot be used", "serve.tls.certificate_file: found a certificate that expired on"]);
    assert_eq!(asked().short(), ("200", "allow"), "the certificate before is in force");
}

#[test]
fn files_that_are_wrong_are_named_with_the_fix() {
    let (dev, files) = (Dev::start(), Files::new());
    let authority = files.authority.certificate().unwrap();
    let other = files.authority.issue(&[("CN", "other")], &[], -1, 30).unwrap();
    let cases = [
        ("server.pem", "", "serve.tls.certificate_file: found an empty file; write a PEM file with the server's certificate"),
        ("server.pem", "plain-text", "serve.tls.certificate_file: found no PEM"),
        ("server.pem", &other.key().unwrap(), "serve.tls.certificate_file: found a private key"),
        ("server.key", "", "serve.tls.key_file: found an empty file; write a PEM file with the unencrypted private key"),
        ("server.key", &authority, "serve.tls.key_file: found a certificate"),
        ("server.key", &other.key().unwrap(), "serve.tls.key_file: found the key of another certificate than the first in"),
        ("server.key", &other.encrypted_key("s3cret").unwrap(), "serve.tls.key_file: found an encrypted private key"),
        ("clients.pem", "", "serve.tls.client_ca_file: found an empty file; write a PEM file with the certificates of the authorities"),
        ("clients.pem", &other.key().unwrap(), "serve.tls.client_ca_file: found a private key"),
    ];
    let put_right = || {
        files.put("server", &files.authority.issue(&[("CN", "gate")], &["127.0.0.1"], -1, 30).unwrap());
        files.write("clients.pem", &authority);
    };
    let refused = |words: &str| {
        let ran = run(&mut serve(&dev, 1, &files.config(json!({}))), b"");
        assert!(ran.exit == Some(1) && ran.stderr.contains(words), "{words}: {ran:?}");
        assert!(!ran.stderr.contains("plain-text") && !ran.stderr.contains("BEGIN"), "{ran:?}");
    };
    for (name, text, words) in cases {
        put_right();
        files.write(name, text);
        refused(words);
    }
    put_right();
    std::fs::remove_file(files.path("server.key")).unwrap();
    refused("serve.tls.key_file: the file ");
    put_right();
    files.write("tokens.yaml", "tokens: [{name: a, certificate: 'CN=a'}]");
    refused("tokens[0].certificate: found a text that is no name of a certificate");
}

/// As many connections as may be say nothing. Their handshakes end after a while, and make room.
#[test]
fn handshakes_that_never_end_keep_nobody_out() {
    let (dev, files) = (Dev::start(), Files::new());
    files.write("clients.pem", &files.authority.certificate().unwrap());
    let (_server, client) = started(&mut serve(&dev, 1, &files.config(json!({"connections_max": 2}))));
    let silent: Vec<_> = (0..2).map(|_| TcpStream::connect(&client.address).unwrap()).collect();
    assert_eq!(files.curl(&client.address, &BEARER, &event()).short(), ("200", "allow"));
    drop(silent);
}
