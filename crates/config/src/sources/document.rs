//! A YAML file that is no configuration and is read as strictly as one: its values, and its faults with their places.

use serde_json::Value;
use tollgate_core::settings::{self, Collector, Faults, Section};

use super::excerpt::Source;
use super::places::Places;

/// A YAML file: its name, its text and its values.
#[derive(Debug)]
pub struct Document {
    origin: String,
    text: String,
    value: Value,
    places: Places,
}

impl Document {
    /// Returns the values of a text.
    ///
    /// # Errors
    /// The text is not YAML; the error says where.
    pub fn parse(origin: String, text: String) -> Result<Self, String> {
        let source = Source { origin: &origin, text: &text, notes: &settings::Notes::default() };
        let places = Places::of(&text).map_err(|error| format!("{origin} is not valid YAML: {}", source.syntax(&error)))?;
        let value = settings::parse(&text)
            .map_err(|_| format!("{origin}: it is no mapping, or it is more than one document, or a key stands twice in it"))?;
        Ok(Self { origin, text, value, places })
    }

    /// Reads the document.
    ///
    /// # Errors
    /// Everything that is wrong with it, as sentences with places and lines.
    pub fn read<T>(&self, read: impl Fn(&Section<'_>) -> T) -> Result<T, String> {
        let all_of = |faults: Collector| {
            let read = read(&Section::root(&self.value, &Value::Null, &faults));
            (read, faults)
        };
        let (result, faults) = all_of(Collector::default());
        faults.into_result(result).map_err(|Faults(faults)| {
            let notes = all_of(Collector::noting()).1.into_notes();
            let source = Source { origin: &self.origin, text: &self.text, notes: &notes };
            let shown: Vec<_> = faults.iter().map(|fault| source.fault(fault, &self.places)).collect();
            format!("{}:\n{}", self.origin, shown.join("\n"))
        })
    }

    /// Returns the line, from 1, on which the value of a path stands, such as `cases[0].events[1]`.
    pub fn line_of(&self, path: &str) -> usize {
        self.places.nearest(path).map_or(1, |(entry, _)| entry.key.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_places_and_values_have_lines() {
        let document = Document::parse("a.yaml".to_owned(), "name: x\nlist:\n  - {one: 1}\n".to_owned()).unwrap();
        assert_eq!((document.line_of("list[0]"), document.line_of("list[0].one"), document.line_of("gone")), (3, 3, 1));
        assert_eq!(
            document.read(|root| (root.string("name"), root.sections("list").map(|list| list[0].u32("one")))),
            Ok(("x".to_owned(), Some(1)))
        );
        let faults = document.read(|root| root.string("nmae")).unwrap_err();
        assert!(faults.contains("name: found an unknown key; write `nmae`") && faults.contains("--> a.yaml:1:1"), "{faults}");
        let syntax = Document::parse("b.yaml".to_owned(), "a: [\n".to_owned()).unwrap_err();
        assert!(syntax.starts_with("b.yaml is not valid YAML") && syntax.contains("--> b.yaml:"), "{syntax}");
        assert!(Document::parse("c.yaml".to_owned(), "- 1\n".to_owned()).is_err());
    }
}
