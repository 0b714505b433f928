//! Shape: an object whose members say that the call failed, or that it did not.

use super::FailureSign;
use super::view::View;
use tollgate_json::{Shape, Value};

/// Looks at the members of an object that say how the call went.
pub fn see<'v>(view: &View<'v>) -> Option<FailureSign<'v>> {
    let object = view.value.filter(Value::is_object)?;
    let is = |key: &str, flag: bool| object.get(key).and_then(|value| value.as_bool()) == Some(flag);
    let says = |key: &str, words: &[&str]| object.get(key).is_some_and(|value| words.iter().any(|word| value.is_text(word)));
    let has_error = view.member("error").is_some_and(|error| match error.shape() {
        Shape::String => !error.is_text(""),
        Shape::Boolean => error.as_bool() == Some(true),
        Shape::Object => error.members().next().is_some(),
        Shape::Array => error.items().next().is_some(),
        _ => false,
    });
    let failed = has_error
        || ["success", "ok"].iter().any(|key| is(key, false))
        || ["failed", "isError", "is_error"].iter().any(|key| is(key, true))
        || says("status", &["error", "failed", "failure"]);
    let is_fine = ["success", "ok"].iter().any(|key| is(key, true)) || says("status", &["ok", "success"]);
    if failed { Some(FailureSign::Failed(view.first_line())) } else { is_fine.then_some(FailureSign::Fine) }
}
