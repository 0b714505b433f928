//! Properties whose values stand in files: `sasl.password_file: /run/secrets/kafka/password` beside `sasl.password: …`.
//!
//! The suffix is the same in the configuration, with `-X` and, in capitals, in the environment. What stands in such a file may change while
//! the process runs: whoever makes a client asks for the [current](KafkaSettings::current_properties) values.

use std::sync::PoisonError;

use tollgate_core::settings::{Fault, Faults, Secret, Texts};

use super::KafkaSettings;
use super::properties::{Properties, Renewed, SUFFIX};

impl KafkaSettings {
    /// Returns all properties with their current values.
    #[must_use]
    pub fn current_properties(&self) -> Properties {
        let mut properties = self.properties.clone();
        properties.extend(self.renewed.0.read().unwrap_or_else(PoisonError::into_inner).clone());
        properties
    }

    /// Puts values in force that have changed in their files: every client that is made from now on has them.
    pub fn renew(&self, values: Properties) {
        self.renewed.0.write().unwrap_or_else(PoisonError::into_inner).extend(values);
    }

    /// Returns the same settings with other values of some properties, apart from these.
    #[must_use]
    pub fn with_properties(&self, values: Properties) -> Self {
        let mut other = Self { renewed: Renewed::default(), ..self.clone() };
        other.properties = self.current_properties();
        other.properties.extend(values);
        other
    }

    /// Reads the files of properties, with a function that returns a file's content or says why it cannot.
    ///
    /// # Errors
    /// Returns a fault for every file that cannot be read, or that holds nothing.
    pub fn read_property_files(&self, read: impl Fn(&str) -> Result<Vec<u8>, String>) -> Result<Properties, Faults> {
        let mut values = Properties::new();
        let mut faults = Vec::new();
        for (property, file) in &self.property_files {
            let text = read(file).and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned()));
            let found = match text {
                Ok(text) => match text.trim_end_matches(['\r', '\n']) {
                    "" => "the name of an empty file".to_owned(),
                    text => {
                        values.insert(property.clone(), text.to_owned());
                        continue;
                    }
                },
                Err(reason) => format!("the name of a file that cannot be read ({reason})"),
            };
            let fix = "name a readable file that holds nothing but the value".to_owned();
            faults.push(Fault { key: format!("kafka.properties.{property}{SUFFIX}"), found, fix });
        }
        if faults.is_empty() { Ok(values) } else { Err(Faults(faults)) }
    }

    /// Reads the files of properties and puts what they hold among the properties.
    ///
    /// # Errors
    /// Those of [`KafkaSettings::read_property_files`].
    pub fn load_property_files(&mut self, read: impl Fn(&str) -> Result<Vec<u8>, String>) -> Result<(), Faults> {
        let values = self.read_property_files(read)?;
        self.properties.extend(values);
        Ok(())
    }

    /// Notes the files of those properties that variables in `_FILE` have set.
    pub(super) fn note_files_of_variables(&mut self, texts: &Texts) {
        let Some(entries) = texts.below.get("kafka").and_then(|kafka| kafka.below.get("properties")) else { return };
        for (name, entry) in &entries.below {
            let Some(source) = entry.source.as_ref().filter(|source| source.is_second_reading) else { continue };
            let (Some(name), Ok(Secret(file))) = (name.strip_suffix(SUFFIX), &source.text) else { continue };
            let named = self.properties.keys().find(|property| property.to_lowercase().replace(['.', '-'], "_") == name);
            if let Some(property) = named.cloned() {
                self.property_files.insert(property, file.clone());
            }
        }
    }
}
