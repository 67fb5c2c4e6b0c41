//! Approvals behind a chat's `/approve` command: somebody asks, somebody else decides.
//!
//! The four keys of an approval are written in one batch, every list is one prefix scan, newest
//! first, and nothing here knows how.
//!
//! [`Approvals`] works on a store in its own process. [`chat`] is the same system behind a chat: a
//! slash command of Mattermost, answered with the help of a Keyloom server.

pub mod chat;

use keyloom::{
    Choice, Collection, Cursor, Error, ErrorKind, Id, Page, Record, Result, Store, Stored,
    Timestamp,
};
use serde::{Deserialize, Serialize};

/// How an approval stands. Only a pending one can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Choice)]
#[serde(rename_all = "lowercase")]
#[transitions(Pending = [Approved, Denied, Canceled])]
pub enum Status {
    /// Nobody has decided yet.
    Pending,
    /// The approver said yes.
    Approved,
    /// The approver said no.
    Denied,
    /// The requester took it back.
    Canceled,
}

/// One request and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "approval:record:{id}")]
#[index(requester = "approval:index:requester:{requester_id}:{created_at desc}:{id}")]
#[index(approver = "approval:index:approver:{approver_id}:{created_at desc}:{id}")]
#[unique(code = "approval:code:{code}")]
pub struct Approval {
    /// 26 characters, made here.
    #[field(generate)]
    pub id: Id,
    /// Who asks.
    pub requester_id: String,
    /// Who decides.
    pub approver_id: String,
    /// When it was asked, in milliseconds.
    pub created_at: Timestamp,
    /// What people say to each other instead of the id: `A-X7K9Q2`. Drawn by the store, again if
    /// it is taken.
    #[field(pattern = "A-******", generate)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// How it stands.
    pub status: Status,
    /// What is asked for.
    pub text: String,
}

/// What somebody wants done about an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Only the approver may.
    Approve,
    /// Only the approver may.
    Deny,
    /// Only the requester may.
    Cancel,
}

/// The approvals of a store.
pub struct Approvals {
    approvals: Collection<Approval>,
}

impl Approvals {
    /// The approvals in a store, which is given their schema.
    pub async fn open(store: &Store) -> Result<Self> {
        Ok(Approvals { approvals: store.collection().await? })
    }

    /// Asks `approver` for something. One commit, no read.
    pub async fn request(&self, requester: &str, approver: &str, text: &str) -> Result<Approval> {
        let approval = Approval {
            id: Id::new(),
            requester_id: requester.to_owned(),
            approver_id: approver.to_owned(),
            created_at: Timestamp::now(),
            code: None,
            status: Status::Pending,
            text: text.to_owned(),
        };
        self.save(&approval).await
    }

    /// Saves an approval as it is, with a code if it has none.
    pub async fn save(&self, approval: &Approval) -> Result<Approval> {
        self.approvals.insert(approval).await?.value()
    }

    /// By the full id: one read.
    pub async fn by_id(&self, id: &str) -> Result<Option<Stored<Approval>>> {
        self.approvals.get(id).await
    }

    /// By the code: two reads.
    pub async fn by_code(&self, code: &str) -> Result<Option<Stored<Approval>>> {
        self.approvals.by_code(code).get().await
    }

    /// What the user asked for, newest first.
    pub async fn requests_of(
        &self,
        user: &str,
        after: Option<Cursor>,
    ) -> Result<Page<Stored<Approval>>> {
        self.approvals.by_requester(user).newest().page(20).after(after).await
    }

    /// What the user has to decide, newest first.
    pub async fn decisions_of(
        &self,
        user: &str,
        after: Option<Cursor>,
    ) -> Result<Page<Stored<Approval>>> {
        self.approvals.by_approver(user).newest().page(20).after(after).await
    }

    /// Both, each once, newest first.
    pub async fn all_of(
        &self,
        user: &str,
        after: Option<Cursor>,
    ) -> Result<Page<Stored<Approval>>> {
        let asked = self.approvals.by_requester(user);
        asked.or(self.approvals.by_approver(user)).newest().page(20).after(after).await
    }

    /// Decides. Fails if the user may not, or if the approval is not pending any more.
    pub async fn decide(&self, user: &str, code: &str, decision: Decision) -> Result<Approval> {
        let found = self.by_code(code).await?.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "there is no approval with this code")
                .with("code", code)
        })?;
        let (allowed, status) = match decision {
            Decision::Approve => (&found.approver_id, Status::Approved),
            Decision::Deny => (&found.approver_id, Status::Denied),
            Decision::Cancel => (&found.requester_id, Status::Canceled),
        };
        if allowed != user {
            return Err(Error::new(
                ErrorKind::Aborted,
                "only the approver decides, and only the requester cancels",
            )
            .with("code", code)
            .with("user", user));
        }
        let decided = Approval { status, ..found.value };
        self.approvals.replace_if(&decided, found.version).await?.value()
    }
}
