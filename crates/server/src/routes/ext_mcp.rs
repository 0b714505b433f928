//! agentgateway's ExtMCP over gRPC. Each call is one message in and one message out, so the framing is all that is needed of gRPC.
//!
//! Whatever goes wrong with a known method is answered by a message that denies: a status of gRPC is left to the gateway's `failureMode`.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use http_body_util::{BodyExt as _, Full};

use tollgate_hosts::ext_mcp;

use super::hooks::ruled;
use super::{App, trace_of};
use crate::refusal::Refusal;

/// The content type of gRPC with protocol buffers.
const GRPC: &str = "application/grpc";
/// The status of gRPC for a call that was answered, and for a method that is not known.
const OK: &str = "0";
const UNIMPLEMENTED: &str = "12";

/// Answers a call of the service: `/agentgateway.dev.ext_mcp.ExtMcp/{method}`.
pub(super) async fn check(State(app): State<Arc<App>>, Path(method): Path<String>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if !parts.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(GRPC.as_bytes())) {
        let message = "content-type: found another type than application/grpc; this path is for agentgateway's ExtMCP";
        return Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_type_unsupported", message).into_response();
    }
    let read = match method.as_str() {
        "CheckRequest" => |message: &[u8]| ext_mcp::check_request(message, format!("{:032x}", fastrand::u128(..))),
        "CheckResponse" => ext_mcp::check_response,
        _ => return answer(Vec::new(), UNIMPLEMENTED),
    };
    let caller = app.caller(&parts);
    let question = match app.body(&parts.headers, body).await {
        Ok(frame) => message_of(&frame).and_then(read),
        Err(refusal) => Err(ext_mcp::refuse(&refusal.message)),
    };
    let trace = trace_of(&parts.headers);
    drop(parts);
    answer(framed(&ruled(&app, caller, &trace, question).await), OK)
}

/// Returns the message in a frame: a flag that says whether it is compressed, its length in four bytes, and itself.
fn message_of(frame: &[u8]) -> Result<&[u8], Vec<u8>> {
    let parts = frame.split_first().and_then(|(flag, rest)| Some((*flag, rest.split_first_chunk::<4>()?)));
    match parts {
        Some((0, (length, message))) if usize::try_from(u32::from_be_bytes(*length)) == Ok(message.len()) => Ok(message),
        Some((1, _)) => Err(ext_mcp::refuse("message: found a compressed message; send it uncompressed")),
        _ => Err(ext_mcp::refuse("message: found a body that is not one message of gRPC; send one message a call")),
    }
}

fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&[0], length.to_be_bytes().as_slice(), message].concat()
}

/// Returns a response of gRPC, whose status comes behind the body.
fn answer(body: Vec<u8>, status: &'static str) -> Response {
    let trailers = HeaderMap::from_iter([(header::HeaderName::from_static("grpc-status"), HeaderValue::from_static(status))]);
    let body = Full::new(Bytes::from(body)).with_trailers(std::future::ready(Some(Ok::<_, Infallible>(trailers))));
    ([(header::CONTENT_TYPE, GRPC)], Body::new(body)).into_response()
}
