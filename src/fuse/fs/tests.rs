mod answers;
mod files;
mod fixture;
mod listings;
mod requests;
