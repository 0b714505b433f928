//! Checks of JSON fields and of many cases in one run.

use serde_json::Value;

/// Asserts that every field of `expected` stands in `actual`; null stands for a field that is left out, and lists are compared whole.
pub fn assert_has(name: &str, actual: &Value, expected: &Value) {
    for (field, expected) in expected.as_object().expect("an object") {
        let actual_field = actual.get(field).unwrap_or(&Value::Null);
        if expected.is_object() && actual_field.is_object() {
            assert_has(&format!("{name}, {field}"), actual_field, expected);
        } else {
            assert_eq!(actual_field, expected, "{name}: {field} of {actual}");
        }
    }
}

/// Checks every case, so that one run names all that fail.
pub fn check_each<T>(cases: impl IntoIterator<Item = T>, name: impl Fn(&T) -> String, check: impl Fn(&T)) {
    let (mut checked, mut failed) = (0, Vec::new());
    for case in cases {
        checked += 1;
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&case))).is_err() {
            failed.push(name(&case));
        }
    }
    assert!(checked > 0, "no case was checked");
    assert!(failed.is_empty(), "{} of {checked} cases failed:\n{}", failed.len(), failed.join("\n"));
}
