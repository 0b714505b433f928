//! Asks a token endpoint: one form by POST, one JSON object back (RFC 6749, RFC 7523).

use std::pin::Pin;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::rt::{Read, Write};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use openssl::ssl::{SslConnector, SslMethod, SslVersion};
use openssl::x509::store::X509StoreBuilder;
use openssl::x509::{X509, X509VerifyResult};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_openssl::SslStream;
use tollgate_core::settings::Secret;

use super::settings::{Grant, OauthSettings};

/// How long one question may take, from the name server to the last byte.
const TIMEOUT: Duration = Duration::from_secs(6);
/// The largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// The longest error code that is repeated.
const CODE_BYTES_MAX: usize = 64;

/// Asks the endpoint for a token, and returns it with its lifetime in milliseconds, if the answer says that. It has a runtime of its own:
/// whoever wants a token may be anywhere.
///
/// # Errors
/// Returns a sentence for people. It repeats nothing of the answer but an error code.
pub fn fetch(settings: &OauthSettings) -> Result<(Secret, Option<i64>), String> {
    let OauthSettings::Endpoint { url, .. } = settings else { return Err("no token endpoint is configured".to_owned()) };
    let uri: Uri = url.parse().map_err(|_| "sasl.oauthbearer.token.endpoint.url is no URL".to_owned())?;
    let host = uri.host().unwrap_or_default().to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let answer = runtime.block_on(async {
        tokio::time::timeout(TIMEOUT, ask(settings, &uri)).await.unwrap_or_else(|_| Err("no answer in time".to_owned()))
    });
    answer.and_then(|(status, body)| read(status, &body)).map_err(|what| format!("the token endpoint {host}: {what}"))
}

async fn ask(settings: &OauthSettings, uri: &Uri) -> Result<(StatusCode, Bytes), String> {
    let request = request(settings, uri)?;
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let is_tls = uri.scheme_str() == Some("https");
    let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let stream = TcpStream::connect((host, port)).await.map_err(|error| error.to_string())?;
    if !is_tls {
        return exchange(TokioIo::new(stream), request).await;
    }
    let connector = connector(settings)?;
    let ssl = connector.configure().and_then(|configuration| configuration.into_ssl(host)).map_err(|error| error.to_string())?;
    let mut stream = SslStream::new(ssl, stream).map_err(|error| error.to_string())?;
    if let Err(error) = Pin::new(&mut stream).connect().await {
        return Err(match stream.ssl().verify_result() {
            X509VerifyResult::OK => error.to_string(),
            refused => format!("its certificate was refused: {}; check https.ca.location in kafka.properties", refused.error_string()),
        });
    }
    exchange(TokioIo::new(stream), request).await
}

fn connector(settings: &OauthSettings) -> Result<SslConnector, String> {
    let OauthSettings::Endpoint { ca_file, ca_pem, .. } = settings else { return Err("no token endpoint is configured".to_owned()) };
    let broken = |_| "TLS cannot be set up; check the OpenSSL configuration".to_owned();
    let mut builder = SslConnector::builder(SslMethod::tls_client()).map_err(broken)?;
    builder.set_min_proto_version(Some(SslVersion::TLS1_2)).map_err(broken)?;
    let authorities = match (ca_file, ca_pem) {
        (Some(file), _) => Some(std::fs::read(file).map_err(|error| format!("https.ca.location: {file} cannot be read ({error})"))?),
        (None, Some(pem)) => Some(pem.clone().into_bytes()),
        (None, None) => None,
    };
    if let Some(pem) = authorities {
        let found = X509::stack_from_pem(&pem).ok().filter(|found| !found.is_empty()).ok_or("https.ca.location holds no certificates")?;
        let mut store = X509StoreBuilder::new().map_err(broken)?;
        found.into_iter().try_for_each(|authority| store.add_cert(authority)).map_err(broken)?;
        builder.set_cert_store(store.build());
    } else {
        // An OpenSSL built from source looks only where it would be installed.
        let found = openssl_probe::probe();
        let _loaded = found.cert_file.is_some_and(|file| builder.set_ca_file(file).is_ok());
        let _loaded = found.cert_dir.into_iter().any(|folder| builder.load_verify_locations(None, Some(&folder)).is_ok());
    }
    Ok(builder.build())
}

fn request(settings: &OauthSettings, uri: &Uri) -> Result<Request<Full<Bytes>>, String> {
    let OauthSettings::Endpoint { grant, scope, .. } = settings else { return Err("no token endpoint is configured".to_owned()) };
    let mut fields = Vec::new();
    let mut authorization = None;
    match grant {
        Grant::ClientCredentials { id, secret } => {
            fields.push(("grant_type", "client_credentials".to_owned()));
            let mut basic = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(format!("{id}:{}", secret.read()?))))
                .map_err(|_| "the client's name or secret cannot be sent".to_owned())?;
            basic.set_sensitive(true);
            authorization = Some(basic);
        }
        Grant::Assertion { file } => {
            let assertion = std::fs::read_to_string(file).map_err(|error| format!("{file} cannot be read ({error})"))?;
            fields.push(("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer".to_owned()));
            fields.push(("assertion", assertion.trim().to_owned()));
        }
    }
    fields.extend(scope.iter().map(|scope| ("scope", scope.clone())));
    let form = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect::<Vec<_>>().join("&");
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
    let mut request = Request::new(Full::new(Bytes::from(form)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = path.parse().map_err(|_| "sasl.oauthbearer.token.endpoint.url has no path".to_owned())?;
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_str(authority).map_err(|_| "its host cannot be sent".to_owned())?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("tollgate/", env!("CARGO_PKG_VERSION"))));
    headers.extend(authorization.map(|basic| (AUTHORIZATION, basic)));
    Ok(request)
}

/// Returns a value as a form has it.
fn encoded(value: &str) -> String {
    let byte = |byte: u8| {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if is_plain { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    value.bytes().map(byte).collect()
}

async fn exchange<S: Read + Write + Unpin + Send + 'static>(
    stream: S,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Bytes), String> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.map_err(|error| error.to_string())?;
    let driver = tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(|error| format!("no HTTP answer ({error})"))?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await.map_err(|_| "an answer that breaks off".to_owned())?;
    driver.abort();
    Ok((status, body.to_bytes()))
}

/// Reads an answer.
fn read(status: StatusCode, body: &[u8]) -> Result<(Secret, Option<i64>), String> {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    if status != StatusCode::OK {
        let is_code = |code: &&str| code.len() <= CODE_BYTES_MAX && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let code = answer.get("error").and_then(Value::as_str).filter(is_code);
        let check = match code {
            Some("invalid_client" | "unauthorized_client") => "; check sasl.oauthbearer.client.id and its secret in kafka.properties",
            Some("invalid_scope") => "; check sasl.oauthbearer.scope in kafka.properties",
            _ => "",
        };
        return Err(format!("status {}{}{check}", status.as_u16(), code.map_or_else(String::new, |code| format!(", {code}"))));
    }
    let token = answer.get("access_token").and_then(Value::as_str).ok_or("an answer without access_token")?;
    let lifetime = answer.get("expires_in").and_then(Value::as_f64).map(|seconds| (seconds * 1e3) as i64);
    Ok((Secret(token.to_owned()), lifetime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_and_failures_named() {
        let (token, lifetime) = read(StatusCode::OK, br#"{"access_token":"abc","token_type":"Bearer","expires_in":300}"#).unwrap();
        assert_eq!((token.0.as_str(), lifetime), ("abc", Some(300_000)));
        for (status, body, expected) in [
            (
                401,
                r#"{"error":"invalid_client","error_description":"s3cret"}"#,
                "status 401, invalid_client; check sasl.oauthbearer.client.id",
            ),
            (400, r#"{"error":"S3cret and more"}"#, "status 400"),
            (502, "<html>", "status 502"),
            (200, "{}", "an answer without access_token"),
        ] {
            let said = read(StatusCode::from_u16(status).unwrap(), body.as_bytes()).map(drop).unwrap_err();
            assert!(said.starts_with(expected) && !said.to_lowercase().contains("s3cret"), "{said}");
        }
    }

    #[test]
    fn forms_are_encoded() {
        assert_eq!(encoded("a b&c=d/ü~"), "a%20b%26c%3Dd%2F%C3%BC~");
    }
}
