//! The guards around handlers that do what real ones should not.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::time::Duration;

use axum::body::{Body, HttpBody, to_bytes};
use axum::routing::get;
use futures_util::stream;
use keyloom::Store;
use serde_json::Value;
use tokio::sync::mpsc;

use super::*;
use crate::body::RawBody;
use crate::config::{Config, Limits};

async fn app(limits: Limits) -> App {
    let store = Store::open("memory:").await.unwrap();
    App::new(store, Config { limits, ..Config::default() })
}

fn request(method: &str, path: &str, body: Body) -> Request {
    let host = (header::HOST, "localhost");
    Request::builder().method(method).uri(path).header(host.0, host.1).body(body).unwrap()
}

async fn problem(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    assert_eq!(response.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    assert!(response.headers().contains_key(log::REQUEST_ID));
    let bytes = to_bytes(response.into_body(), 10_000).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap())
}

async fn panics() -> StatusCode {
    panic!("a secret in a panic")
}

#[tokio::test]
async fn a_panic_is_an_answer_and_the_next_request_is_answered() {
    let app = app(Limits::default()).await;
    let routes = Router::new().route("/x", get(panics).put(panics)).route("/y", get(|| async {}));
    let router = around(routes, &app).with_state(app);
    let answer = router.clone().oneshot(request("GET", "/x", Body::empty())).await.unwrap();
    let (status, body) = problem(answer).await;
    assert_eq!((status, &body["type"]), (500, &"/problems/internal".into()));
    assert!(!body.to_string().contains("secret"));
    let answer = router.clone().oneshot(request("PUT", "/x", Body::empty())).await.unwrap();
    let (status, body) = problem(answer).await;
    assert_eq!((status, &body["outcome"]), (504, &"may_have_happened".into()));
    let answer = router.oneshot(request("GET", "/y", Body::empty())).await.unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_takes_too_long_is_given_up() {
    let app = app(Limits::default()).await;
    let never = || std::future::pending::<()>();
    let routes = Router::new().route("/x", get(never).put(never));
    let router = around(routes, &app).with_state(app);
    let answer = router.clone().oneshot(request("GET", "/x", Body::empty())).await.unwrap();
    assert_eq!(answer.headers()[header::RETRY_AFTER], "1");
    let (status, body) = problem(answer).await;
    assert_eq!(
        (status, &body["retry"], &body["outcome"]),
        (503, &true.into(), &"did_not_happen".into())
    );
    let answer = router.oneshot(request("PUT", "/x", Body::from("x"))).await.unwrap();
    let (status, body) = problem(answer).await;
    assert_eq!(status, 504);
    assert_eq!(body["type"], "/problems/outcome-unknown");
    assert_eq!(body["outcome"], "may_have_happened");
}

/// The time for an answer begins when the request is there: a slow body has its own limit.
#[tokio::test(start_paused = true)]
async fn a_slow_body_does_not_use_up_the_time_for_the_answer() {
    let limits = Limits {
        answer_timeout: Duration::from_secs(1),
        body_timeout: Duration::from_secs(60),
        ..Limits::default()
    };
    let app = app(limits).await;
    let routes = Router::new().route("/x", get(|| async {}).put(|_: RawBody| async {}));
    let router = around(routes, &app).with_state(app);
    let slow = |seconds| {
        let pause = Duration::from_secs(seconds);
        Body::from_stream(stream::once(async move {
            let never = std::future::pending::<()>();
            drop(tokio::time::timeout(pause, never).await);
            Ok::<_, Infallible>("late")
        }))
    };
    let answer = router.clone().oneshot(request("PUT", "/x", slow(30))).await.unwrap();
    assert_eq!(answer.status(), 200);
    let (status, body) =
        problem(router.oneshot(request("PUT", "/x", slow(61))).await.unwrap()).await;
    assert_eq!((status, &body["type"]), (408, &"/problems/request-timeout".into()));
}

/// A body whose bytes the test sends when it likes.
fn body_of(pieces: mpsc::Receiver<&'static str>) -> Body {
    Body::from_stream(stream::unfold(pieces, |mut pieces| async {
        let piece = pieces.recv().await?;
        Some((Ok::<_, Infallible>(piece), pieces))
    }))
}

#[tokio::test]
async fn requests_over_the_limit_are_refused_and_those_that_arrive_take_no_place() {
    let app = app(Limits { requests_max: 1, ..Limits::default() }).await;
    let (begun, mut has_begun) = mpsc::channel::<()>(1);
    let (go_on, may_go_on) = tokio::sync::watch::channel(false);
    let hold = move || {
        let (begun, mut may_go_on) = (begun.clone(), may_go_on.clone());
        async move {
            begun.send(()).await.unwrap();
            may_go_on.wait_for(|may| *may).await.unwrap();
        }
    };
    let echo = |body: RawBody| async { body.0 };
    let routes = Router::new().route("/hold", get(hold)).route("/x", get(|| async {}).put(echo));
    let router = around(routes, &app).with_state(app);

    let (piece, pieces) = mpsc::channel(1);
    let arriving = tokio::spawn(router.clone().oneshot(request("PUT", "/x", body_of(pieces))));
    piece.send("a").await.unwrap();
    // One that is still arriving keeps nobody out.
    let answer = router.clone().oneshot(request("GET", "/x", Body::empty())).await.unwrap();
    assert_eq!(answer.status(), 200);

    let held = tokio::spawn(router.clone().oneshot(request("GET", "/hold", Body::empty())));
    has_begun.recv().await.unwrap();
    let answer = router.clone().oneshot(request("GET", "/x", Body::empty())).await.unwrap();
    assert_eq!(answer.headers()[header::RETRY_AFTER], "1");
    let (status, body) = problem(answer).await;
    assert_eq!(
        (status, &body["type"], &body["retry"]),
        (503, &"/problems/overloaded".into(), &true.into())
    );
    // Nor does it get in when it has arrived, and nothing of it was done.
    drop(piece);
    let (status, body) = problem(arriving.await.unwrap().unwrap()).await;
    assert_eq!((status, &body["type"]), (503, &"/problems/overloaded".into()));
    assert_eq!(body["outcome"], "did_not_happen");

    go_on.send(true).unwrap();
    assert_eq!(held.await.unwrap().unwrap().status(), 200);
    let answer = router.oneshot(request("PUT", "/x", Body::from("b"))).await.unwrap();
    assert_eq!(to_bytes(answer.into_body(), 10).await.unwrap(), "b");
}

/// Whoever watches over the server is answered when the requests that it works on are all there
/// may be.
#[tokio::test]
async fn health_is_answered_when_as_many_requests_as_may_be_are_worked_on() {
    let app = app(Limits { requests_max: 1, ..Limits::default() }).await;
    let permits = Arc::new(Semaphore::new(0));
    let routes = Router::new().route("/x", get(|| async {})).merge(crate::metrics::routes());
    let router = guarded(routes, Guard { app: app.clone(), permits }).with_state(app);
    for (path, status) in [("/x", 503), ("/health", 200), ("/ready", 200), ("/metrics", 503)] {
        let answer = router.clone().oneshot(request("GET", path, Body::empty())).await.unwrap();
        assert_eq!(answer.status(), status, "{path}");
    }
}

/// A body that says how long it is, and never comes.
struct Announced(u64);

impl HttpBody for Announced {
    type Data = bytes::Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<bytes::Bytes>, Infallible>>> {
        std::task::Poll::Pending
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        hyper::body::SizeHint::with_exact(self.0)
    }
}

/// A large body waits for its turn as long as a body may take. Small ones have room of their own.
#[tokio::test(start_paused = true)]
async fn bodies_take_room_in_turn_and_those_that_find_none_are_refused_unread() {
    let limits = Limits {
        memory_bytes_max: 64 << 20,
        body_timeout: Duration::from_secs(30),
        ..Limits::default()
    };
    let app = app(limits).await;
    let routes = Router::new().route("/x", get(|| async {}).put(|_: RawBody| async {}));
    let router = around(routes, &app).with_state(app);
    let send = |bytes| {
        let asked = router.clone().oneshot(request("PUT", "/x", Body::new(Announced(bytes))));
        tokio::spawn(async move { problem(asked.await.unwrap()).await })
    };
    let seconds = |seconds| tokio::time::sleep(Duration::from_secs(seconds));
    let first = send(5 << 20);
    seconds(20).await;
    let second = send(5 << 20);
    seconds(5).await;
    let third = send(5 << 20);
    // Beside them small ones are answered, and what could never fit is refused at once.
    let answer = router.clone().oneshot(request("PUT", "/x", Body::from("small"))).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(send(7 << 20).await.unwrap().0, 413);
    // The first is over after 30 seconds; then the second has the room, and for as long.
    let (status, told) = first.await.unwrap();
    assert_eq!((status, &told["type"]), (408, &"/problems/request-timeout".into()));
    let (status, told) = third.await.unwrap();
    assert_eq!((status, &told["type"]), (503, &"/problems/overloaded".into()));
    assert_eq!((&told["retry"], &told["outcome"]), (&true.into(), &"did_not_happen".into()));
    assert!(!second.is_finished());
    assert_eq!(second.await.unwrap().0, 408);
}

/// What takes long to compute goes on where nobody else is served, whatever the handler.
#[tokio::test]
async fn a_request_that_takes_long_goes_on_aside_and_may_panic_there() {
    let app = app(Limits::default()).await;
    let name = || std::thread::current().name().unwrap_or_default().to_owned();
    let aside = move |axum::Extension(arrival): axum::Extension<Arrival>| async move {
        let before = name();
        arrival.go_aside().await;
        arrival.go_aside().await;
        format!("{} {}", before == "keyloom-aside", name())
    };
    let panics = |axum::Extension(arrival): axum::Extension<Arrival>| async move {
        arrival.go_aside().await;
        panics().await
    };
    let routes = Router::new().route("/x", get(aside)).route("/y", get(panics));
    let router = around(routes, &app).with_state(app);
    let answer = router.clone().oneshot(request("GET", "/x", Body::empty())).await.unwrap();
    assert_eq!(to_bytes(answer.into_body(), 100).await.unwrap(), "false keyloom-aside");
    let answer = router.oneshot(request("GET", "/y", Body::empty())).await.unwrap();
    assert_eq!(problem(answer).await.0, 500);
}

/// Below the console a browser is shown a page, whoever refuses it; programs get JSON.
#[tokio::test(start_paused = true)]
async fn people_are_refused_with_a_page_and_programs_with_json() {
    let limits = Limits { head_bytes_max: 500, ..Limits::default() };
    let app = app(limits).await;
    let never = || std::future::pending::<()>();
    let routes = Router::new()
        .route("/console/panics", get(panics).post(panics))
        .route("/console/never", get(never));
    let router = around(routes, &app).with_state(app.clone());
    let full = App::new(app.store().clone(), Config::default());
    let full = Guard { app: full, permits: Arc::new(Semaphore::new(0)) };
    let full = guarded(Router::new().route("/console/x", get(|| async {})), full).with_state(app);
    let long = format!("/console/{}", "x".repeat(500));
    for (router, method, path, more, status, advice) in [
        (&router, "GET", "/console/panics", None, 500, "server's log"),
        (&router, "GET", "/console/never", None, 503, "Try again"),
        (&router, "GET", "/console/never", Some((header::HOST, "evil.example")), 421, "--host"),
        (&router, "POST", "/console/panics", None, 403, "send it from there"),
        (
            &router,
            "POST",
            "/console/panics",
            Some((header::ORIGIN, "http://localhost")),
            504,
            "may have happened",
        ),
        (&router, "GET", long.as_str(), None, 431, "Shorten"),
        (&full, "GET", "/console/x", None, 503, "Try again"),
    ] {
        let ask = |accept: Option<&'static str>| {
            let mut asked = request(method, path, Body::empty());
            let accept = accept.map(|accept| (header::ACCEPT, accept));
            for (name, value) in more.iter().cloned().chain(accept) {
                asked.headers_mut().insert(name, value.parse().unwrap());
            }
            router.clone().oneshot(asked)
        };
        let page = ask(Some("text/html,*/*;q=0.8")).await.unwrap();
        assert_eq!(page.status(), status, "{path}");
        assert_eq!(page.headers()[header::CONTENT_TYPE], "text/html; charset=utf-8", "{path}");
        assert_eq!(page.headers().contains_key(header::RETRY_AFTER), status == 503, "{path}");
        let text = to_bytes(page.into_body(), 100_000).await.unwrap();
        let text = String::from_utf8(text.to_vec()).unwrap();
        assert!(text.contains(&format!("<h1>{status} ")) && text.contains(advice), "{text}");
        assert!(!text.contains("secret"), "{text}");
        for accept in [None, Some("*/*"), Some("application/json")] {
            assert_eq!(problem(ask(accept).await.unwrap()).await.0, status, "{path} {accept:?}");
        }
    }
}

#[tokio::test]
async fn any_number_of_requests_may_be_allowed() {
    let app = app(Limits { requests_max: usize::MAX, ..Limits::default() }).await;
    let router = around(Router::new().route("/x", get(|| async {})), &app).with_state(app);
    let answer = router.oneshot(request("GET", "/x", Body::empty())).await.unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn a_handler_keeps_its_own_policy_and_lifetime() {
    let app = app(Limits::default()).await;
    let own = || async {
        [
            (header::CONTENT_SECURITY_POLICY, "default-src 'self'"),
            (header::CACHE_CONTROL, "max-age=9"),
        ]
    };
    let router = around(Router::new().route("/console/x", get(own)), &app).with_state(app);
    let answer = router.oneshot(request("GET", "/console/x", Body::empty())).await.unwrap();
    assert_eq!(answer.headers()[header::CONTENT_SECURITY_POLICY], "default-src 'self'");
    assert_eq!(answer.headers()[header::CACHE_CONTROL], "max-age=9");
    assert_eq!(answer.headers()[header::X_FRAME_OPTIONS], "DENY");
}
