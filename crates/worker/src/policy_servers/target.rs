//! Where questions are sent and with which headers: the URL and headers of the settings, checked once.

use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Uri};

use http_body_util::Full;

use tollgate_core::decide::guardrail::HttpSettings;
use tollgate_core::settings::Secret;

use super::EndpointError;

/// Headers that belong to the connection and the body, so the configuration may not set them. `accept-encoding` is among them since
/// compressed answers cannot be read.
#[rustfmt::skip]
const RESERVED: [&str; 10] = [
    "accept-encoding", "connection", "content-length", "expect", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding",
    "upgrade",
];

/// The URL and headers of one server, checked.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// The whole URL, as the connector takes it.
    pub(super) uri: Uri,
    /// Whether the connection is TLS.
    pub(super) is_tls: bool,
    /// The path and query, as the request line has them.
    path: Uri,
    headers: HeaderMap,
}

impl Target {
    pub(super) fn new(settings: &HttpSettings) -> Result<Self, EndpointError> {
        let bad_url = |problem: &str| EndpointError::new(settings, "url", problem);
        // The parser would drop the fragment without an error.
        if settings.url.contains('#') {
            return Err(bad_url("found a fragment (`#`), which no server is sent; leave it out"));
        }
        let uri: Uri = settings.url.parse().map_err(|_| bad_url("found no URL; write one such as https://policy.example/v1/decide"))?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(bad_url("found no http or https URL; write one such as https://policy.example/v1/decide")),
        };
        let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        if authority.contains('@') {
            return Err(bad_url("found credentials; send them as a header (headers.authorization)"));
        }
        let host = uri.host().unwrap_or_default();
        let port = authority.strip_prefix(host).unwrap_or_default();
        // The parser takes any digits for a port.
        let has_port = port.is_empty() || uri.port_u16().is_some_and(|port| port > 0);
        if host.is_empty() || !has_port {
            return Err(bad_url("found no host and port to connect to; write them such as https://policy.example:8443/v1/decide"));
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path: Uri = path.parse().map_err(|_| bad_url("found no path; write one such as https://policy.example/v1/decide"))?;
        let host_header = HeaderValue::from_str(authority).map_err(|_| bad_url("found a host that cannot be sent; write it in ASCII"))?;
        let headers = headers(settings, host_header)?;
        Ok(Self { is_tls, path, headers, uri })
    }

    /// Returns the HTTP request for a question.
    pub(super) fn request(&self, question: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(question));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.path.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }
}

/// Returns the headers of every question: ours, overridden by the configured ones.
fn headers(settings: &HttpSettings, host: HeaderValue) -> Result<HeaderMap, EndpointError> {
    let mut headers = HeaderMap::new();
    headers.insert(HOST, host);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("tollgate/", env!("CARGO_PKG_VERSION"))));
    let mut seen = Vec::new();
    for (key, name, value) in configured(settings)? {
        let bad = |problem: &str| EndpointError::new(settings, &format!("{key}.{name}"), problem);
        let header = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| bad("found a name that no header can have; write letters, digits and `-`"))?;
        if RESERVED.contains(&header.as_str()) {
            return Err(bad("found a header that the connection sets itself; leave it out"));
        }
        if seen.contains(&header) {
            return Err(bad("found the same header twice, spelled differently; keep one"));
        }
        // The value is a secret and stays out of the message.
        let mut value = HeaderValue::from_str(&value.0).map_err(|_| {
            bad("found a value that no header can have; write it without line breaks and control characters (is there one at its end?)")
        })?;
        value.set_sensitive(true);
        headers.insert(header.clone(), value);
        seen.push(header);
    }
    Ok(headers)
}

/// Returns the configured headers, each with its key in the configuration, its name and its value. Values in files are read.
fn configured(settings: &HttpSettings) -> Result<Vec<(&'static str, &str, Secret)>, EndpointError> {
    let mut headers: Vec<_> = settings.headers.iter().map(|(name, value)| ("headers", name.as_str(), value.clone())).collect();
    for (name, file) in &settings.header_files {
        let value = std::fs::read_to_string(file).map_err(|error| {
            let problem = format!("found the name of a file that cannot be read ({}); name a readable file", error.kind());
            EndpointError::new(settings, &format!("header_files.{name}"), &problem)
        })?;
        headers.push(("header_files", name, Secret(value.trim_end_matches(['\n', '\r']).to_owned())));
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy_servers::test_settings;
    use tollgate_core::settings::Secret;

    fn target(url: &str, headers: &[(&str, &str)]) -> Result<Target, String> {
        let mut settings = test_settings(url);
        settings.headers = headers.iter().map(|(name, value)| ((*name).to_owned(), Secret((*value).to_owned()))).collect();
        Target::new(&settings).map_err(|error| error.to_string())
    }

    #[test]
    fn a_question_is_a_post_of_json_to_the_path_with_the_configured_headers() {
        let target =
            target("http://policy.example:8181/v1/data?x=1", &[("Authorization", "Bearer s3cret"), ("accept", "text/html")]).unwrap();
        let request = target.request(Bytes::from_static(b"{}"));
        assert_eq!((request.method(), request.uri().to_string().as_str()), (&Method::POST, "/v1/data?x=1"));
        let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(header("host").as_deref(), Some("policy.example:8181"));
        assert_eq!(header("content-type").as_deref(), Some("application/json"));
        assert_eq!(header("accept").as_deref(), Some("text/html"), "configured headers go over ours");
        assert_eq!(header("authorization").as_deref(), Some("Bearer s3cret"));
        assert_eq!(header("accept-encoding"), None);
        assert!(!format!("{target:?}").contains("s3cret"));
    }

    #[test]
    fn every_kind_of_address_is_understood() {
        for (url, is_tls, host, path) in [
            ("http://policy", false, "policy", "/"),
            ("https://policy/", true, "policy", "/"),
            ("https://[::1]:8443/x", true, "[::1]:8443", "/x"),
            ("HTTP://127.0.0.1:1/a%20b", false, "127.0.0.1:1", "/a%20b"),
        ] {
            let target = target(url, &[]).unwrap();
            let request = target.request(Bytes::new());
            assert_eq!((target.is_tls, request.uri().to_string().as_str()), (is_tls, path), "{url}");
            assert_eq!(request.headers().get(HOST).unwrap(), host, "{url}");
        }
    }

    #[test]
    fn an_address_that_cannot_be_asked_says_so_without_repeating_itself() {
        for (url, problem) in [
            ("", "found no URL"),
            ("policy", "found no http or https URL"),
            ("/v1/decide", "found no http or https URL"),
            ("ftp://policy/s3cret", "found no http or https URL"),
            ("http://", "found no URL"),
            ("http:///s3cret", "found no URL"),
            ("http://:80/s3cret", "found no host"),
            ("http://policy:0/s3cret", "found no host"),
            ("http://policy:/s3cret", "found no host"),
            ("http://policy:99999/s3cret", "found no host"),
            ("http://[::1]:0/s3cret", "found no host"),
            ("http://user:s3cret@policy/", "found credentials"),
            ("http://policy/#s3cret", "found a fragment"),
            ("http://policy/s3cret\nx", "found no URL"),
            ("http://pölicy/s3cret", "found no URL"),
        ] {
            let error = target(url, &[]).unwrap_err();
            assert!(error.starts_with("guardrail provider policy: url: ") && error.contains(problem), "{url}: {error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_header_that_cannot_be_sent_says_so_without_its_value() {
        for (name, value, problem) in [
            ("x y", "s3cret", "found a name"),
            ("", "s3cret", "found a name"),
            ("Content-Length", "s3cret", "the connection sets itself"),
            ("Accept-Encoding", "gzip, s3cret", "the connection sets itself"),
            ("x-key", "s3cret\n", "found a value"),
            ("x-key", "s3cret\r\nx: y", "found a value"),
            ("x-key", "s3cret\u{7f}", "found a value"),
        ] {
            let error = target("http://policy", &[(name, value)]).unwrap_err();
            assert!(error.starts_with(&format!("guardrail provider policy: headers.{name}: ")) && error.contains(problem), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
        let mut settings = test_settings("http://policy");
        settings.header_files = [("authorization".to_owned(), "/nowhere".to_owned())].into();
        let error = Target::new(&settings).unwrap_err().to_string();
        assert!(error.starts_with("guardrail provider policy: header_files.authorization: found the name of a file"), "{error}");
        let error = target("http://policy", &[("X-Key", "a"), ("x-key", "b")]).unwrap_err();
        assert!(error.contains("the same header twice"), "{error}");
    }
}
