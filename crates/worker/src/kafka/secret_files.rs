//! The files of secrets, certificates and keys that clients read when they are made, and whether they have changed since.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use rdkafka::consumer::Consumer as _;

use tollgate_config::settings::{KafkaSettings, Properties};

use super::connect::{Inquirer, Watch};
use super::consumer::consumer_config;
use super::oauth;
use super::property_fault::PropertyFault;

/// Properties that name files which librdkafka reads when a client is made.
const LOCATIONS: [&str; 5] =
    ["ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.keystore.location", "ssl.crl.location"];
/// How long the brokers may take to answer a client with changed secrets.
const TRIAL_MAX: Duration = Duration::from_secs(5);

/// The files of all secrets, with what was in them when clients were last made.
#[derive(Debug)]
pub struct SecretFiles {
    kafka: KafkaSettings,
    /// The digest of each file, by property.
    seen: BTreeMap<String, u64>,
}

/// What has changed.
#[derive(Clone, PartialEq, Eq)]
pub struct ChangedSecrets {
    /// The properties whose files have changed.
    pub properties: Vec<String>,
    values: Properties,
    digests: BTreeMap<String, u64>,
}

impl std::fmt::Debug for ChangedSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChangedSecrets").field("properties", &self.properties).finish_non_exhaustive()
    }
}

impl SecretFiles {
    /// Returns the files of these settings, with the values that are in force.
    #[must_use]
    pub fn new(kafka: &KafkaSettings) -> Self {
        // Clones share what is put in force later.
        let mut files = Self { kafka: kafka.clone(), seen: BTreeMap::new() };
        files.seen = files.digests(&kafka.current_properties());
        files
    }

    /// Returns what has changed since clients were last made, if anything has.
    ///
    /// # Errors
    /// Returns which files cannot be read or are empty, and what to do about it, for people. Somebody may be replacing them just now.
    pub fn changed(&self) -> Result<Option<ChangedSecrets>, String> {
        let read = self.kafka.read_property_files(|path| std::fs::read(path).map_err(|error| error.to_string()));
        let unreadable = read.as_ref().err().map(|faults| faults.to_string()).into_iter().chain(self.unreadable_locations());
        let unreadable = unreadable.collect::<Vec<_>>().join("\n");
        let Some(values) = read.ok().filter(|_| unreadable.is_empty()) else { return Err(unreadable.replace('\n', "; ")) };
        let digests = self.digests(&values);
        let changed = digests.iter().filter(|(property, digest)| self.seen.get(*property).is_some_and(|seen| seen != *digest));
        let properties: Vec<_> = changed.map(|(property, _)| property.clone()).collect();
        Ok((!properties.is_empty()).then_some(ChangedSecrets { properties, values, digests }))
    }

    /// Returns a sentence for each file that librdkafka could read itself when clients were last made, and could not read now.
    fn unreadable_locations(&self) -> impl Iterator<Item = String> {
        let seen = LOCATIONS.iter().filter(|property| self.seen.contains_key(**property));
        seen.filter_map(|property| {
            let path = self.kafka.properties.get(*property)?;
            let error = std::fs::read(path).err()?;
            Some(format!("kafka.properties.{property}: found {path}, which cannot be read ({error}); name a readable file"))
        })
    }

    /// Puts changed secrets in force for every client that is made from now on, without asking the brokers first, and returns whether there
    /// were any. This is for clients whose brokers do not answer anyway.
    pub fn take_over_untried(&mut self) -> bool {
        let Ok(Some(changed)) = self.changed() else { return false };
        tracing::info!(properties = changed.properties.join(", "), "secrets of the brokers' clients have changed");
        self.take_over(changed);
        true
    }

    /// Returns the digests of the values that stand in files, and of the files that librdkafka reads itself.
    fn digests(&self, values: &Properties) -> BTreeMap<String, u64> {
        let of_value = |property: &String| Some((property.clone(), digest(values.get(property)?.as_bytes())));
        let of_values = self.kafka.property_files.keys().filter(|property| !oauth::is_taken_here(property)).filter_map(of_value);
        let of_file = |property: &&str| {
            let path = self.kafka.properties.get(*property)?;
            // A folder of authorities is not watched.
            let digest = std::fs::read(path).ok().map(|content| digest(&content)).or_else(|| self.seen.get(*property).copied())?;
            Some(((*property).to_owned(), digest))
        };
        of_values.chain(LOCATIONS.iter().filter_map(of_file)).collect()
    }

    /// Asks the brokers with the changed secrets, apart from all clients that work.
    ///
    /// # Errors
    /// Returns why the brokers did not answer, for people.
    pub fn try_out(&self, changed: &ChangedSecrets, is_wanted: &dyn Fn() -> bool) -> Result<(), String> {
        let kafka = self.kafka.with_properties(changed.values.clone());
        let inquirer = Inquirer::new(consumer_config(&kafka, &kafka.group_id, None));
        let inquirer = inquirer.map_err(|error| PropertyFault::of(&error, &kafka).to_string())?;
        let deadline = Instant::now() + TRIAL_MAX + TRIAL_MAX;
        let is_wanted = || is_wanted() && Instant::now() < deadline;
        let watch = &mut Watch { is_wanted: &is_wanted, say: &mut |_| {} };
        let topic = kafka.topics.events.clone();
        match inquirer.ask(watch, move |client| client.fetch_metadata(Some(&topic), TRIAL_MAX)) {
            Some(Ok(_)) => Ok(()),
            Some(Err(error)) => Err(inquirer.last_reason().map_or_else(|| error.to_string(), |reason| reason.to_string())),
            None => Err(inquirer.last_reason().map_or_else(|| "no answer".to_owned(), |reason| reason.to_string())),
        }
    }

    /// Puts the changed secrets in force for every client that is made from now on.
    pub fn take_over(&mut self, changed: ChangedSecrets) {
        self.kafka.renew(changed.values);
        self.seen = changed.digests;
    }
}

fn digest(content: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::settings::{defaults, parse};

    #[test]
    fn changes_are_seen_until_they_are_taken_over() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        write("password", "one\n");
        write("ca.pem", "A");
        let path = directory.path().display();
        let text = format!(
            "kafka: {{properties: {{sasl.password_file: {path}/password, ssl.ca.location: {path}/ca.pem, ssl.key.location: /nowhere}}}}"
        );
        let mut kafka = tollgate_config::settings::Settings::read(&parse(&text).unwrap(), &defaults().unwrap()).unwrap().kafka;
        kafka.load_property_files(|path| std::fs::read(path).map_err(|error| error.to_string())).unwrap();
        let mut files = SecretFiles::new(&kafka);
        assert_eq!(files.changed(), Ok(None));
        write("password", "one");
        assert_eq!(files.changed(), Ok(None), "the end of the line is no part of it");
        write("password", "two");
        write("ca.pem", "B");
        let changed = files.changed().unwrap().unwrap();
        assert_eq!(changed.properties, ["sasl.password", "ssl.ca.location"]);
        assert!(!format!("{changed:?}").contains("two"));
        assert_eq!(kafka.current_properties()["sasl.password"], "one");
        write("password", "\n");
        std::fs::remove_file(directory.path().join("ca.pem")).unwrap();
        let said = files.changed().unwrap_err();
        assert!(said.starts_with("kafka.properties.sasl.password_file: found the name of an empty file; "), "{said}");
        assert!(said.contains("; kafka.properties.ssl.ca.location: found ") && !said.contains("ssl.key.location"), "{said}");
        files.take_over(changed);
        assert_eq!(kafka.current_properties()["sasl.password"], "two");
        write("password", "two");
        write("ca.pem", "B");
        assert_eq!(files.changed(), Ok(None));
    }
}
