//! The console: its pages, their JSON twins, and people who use them.

mod around;
mod browser;
mod care;
mod fixture;
mod hostile;
mod keys;
mod pages;
mod twice;
mod unknown;
mod visitor;
