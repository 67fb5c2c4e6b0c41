//! The console: its pages, their JSON twins, and people who use them.

mod browser;
mod care;
mod fixture;
mod hostile;
mod pages;
mod twice;
mod unknown;
