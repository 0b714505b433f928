//! From bytes to events: [`record`] is a Kafka record as plain data, [`decode`] makes an event of it.

pub mod decode;
pub mod record;
