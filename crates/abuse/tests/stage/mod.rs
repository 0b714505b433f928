//! Checks the abuse stage: that it counts exactly, whatever comes twice, late, out of order or from a stage that died; that whom it suspends
//! and tells is what its rules say; and that nobody gets away, and no honest one is hit, in a simulated fleet.

mod crashes;
mod exactness;
mod fixture;
mod fleet;
mod golden;
mod interleaving;
mod ladders;
mod late;
mod limits;
mod pack;
mod population;
mod sources;
mod stories;
mod tenants;
mod warming;
