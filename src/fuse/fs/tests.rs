mod answers;
mod files;
mod fixture;
mod invalidations;
mod listings;
mod requests;
