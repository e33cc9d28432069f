import { assert, assertEquals, assertNotEquals, assertRejects } from "@std/assert";
import { failure, imageCall, images, overEach, PNG, png, readAll, startHost, upload, upstreamAt } from "./host.ts";
import { CLOSED_PORT } from "../../support/closed_port.ts";

overEach(
  "Errors of the host are told apart: the client's, the gateway's, and those that may have made images",
  async () => {
    const refusal = (error: object) => ({ error: { message: "Your request was rejected", param: null, ...error } });
    const cases: [status: number, body: unknown, kind: string, code: string | undefined, final: boolean][] = [
      [
        400,
        refusal({ type: "image_generation_user_error", code: "moderation_blocked" }),
        "invalid",
        "moderation_blocked",
        false,
      ],
      [
        400,
        refusal({ type: "invalid_request_error", code: "content_policy_violation" }),
        "invalid",
        "content_policy_violation",
        false,
      ],
      [
        400,
        refusal({ type: "image_generation_user_error", code: null }),
        "invalid",
        "image_generation_user_error",
        false,
      ],
      [403, refusal({ code: "moderation_blocked" }), "invalid", "moderation_blocked", false],
      [500, refusal({ code: "content_policy_violation" }), "invalid", "content_policy_violation", false],
      [200, refusal({ code: "moderation_blocked" }), "invalid", "moderation_blocked", false],
      [
        400,
        refusal({ type: "invalid_request_error", code: "unknown_parameter" }),
        "invalid",
        "unknown_parameter",
        false,
      ],
      [401, refusal({ code: "invalid_api_key" }), "upstream", undefined, true],
      [403, refusal({}), "upstream", "upstream_refused", true],
      [413, refusal({}), "too_large", undefined, false],
      [429, refusal({ code: "rate_limit_exceeded" }), "exhausted", undefined, false],
      [
        429,
        refusal({ type: "insufficient_quota", code: "insufficient_quota" }),
        "exhausted",
        "insufficient_quota",
        true,
      ],
      [503, "busy", "overloaded", undefined, false],
      [500, refusal({ type: "server_error" }), "upstream", undefined, true],
      [502, "<html>", "upstream", undefined, true],
      [504, "", "timeout", undefined, true],
      [307, "", "upstream", undefined, false],
    ];
    for (const [status, body, kind, code, final] of cases) {
      await using host = startHost(() =>
        new Response(typeof body === "string" ? body : JSON.stringify(body), {
          status,
          headers: { "retry-after": "7", location: "http://127.0.0.1:2/" },
        })
      );
      const error = await failure(host.create().feed.then(readAll));
      assertEquals([error.kind, error.code, error.final], [kind, code, final], `${status} ${JSON.stringify(body)}`);
      const waits = status === 429 || status === 503;
      assertEquals(error.retryAfterMs, waits ? 7_000 : undefined, `${status}`);
      if (error.kind === "invalid") assertEquals(error.message, "Your request was rejected");
      assertEquals(host.count(), 1);
    }
  },
);

overEach("A host that forbids a retry, but has certainly made nothing, lets another be asked", async () => {
  for (const status of [429, 503]) {
    await using host = startHost(() => new Response("", { status, headers: { "x-should-retry": "false" } }));
    assertEquals((await failure(host.create().feed.then(readAll))).final, false);
  }
});

overEach("A host that cannot be reached has certainly made nothing: the error lets another be asked", async () => {
  const upstream = upstreamAt(CLOSED_PORT);
  const edit = { kind: "edit" as const, images: [upload(new Uint8Array(1_000_000))] };
  for (const request of [{}, { n: 3 }, edit]) {
    for (const stream of [false, true]) {
      const call = imageCall({ ...request, stream }, { images: { single: true } });
      const error = await failure(upstream.create(call));
      assertEquals([error.kind, error.final], ["upstream", false]);
    }
  }
  upstream.close();
});

overEach("A host that hangs up without an answer may have begun: the error is final", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const hangUp = (async () => {
    for await (const connection of listener) {
      await connection.read(new Uint8Array(65_536));
      connection.close();
    }
  })();
  const upstream = upstreamAt(listener.addr.port);
  for (const request of [{}, { kind: "edit" as const, images: [upload(new Uint8Array(30_000_000))] }]) {
    const error = await failure(upstream.create(imageCall(request)));
    assertEquals([error.kind, error.final], ["upstream", true]);
  }
  upstream.close();
  listener.close();
  await hangUp;
});

overEach("Requests for one image each: those that fail do not touch the others", async () => {
  await using host = startHost(async (request, index) => {
    assertEquals("n" in await request.json(), false);
    if (index === 1) return Response.json({ error: { message: "no", type: "server_error" } }, { status: 500 });
    if (index === 3) return images("QUJD");
    return images(png(index));
  });
  const { feed } = host.create({ n: 5 }, { images: { single: true } });
  const all = await readAll(await feed);
  assertEquals(host.count(), 5);
  assertEquals(all.map(({ index }) => index).sort(), [0, 1, 2, 3, 4]);
  const made = all.flatMap((event) => event.type === "image" ? [event.base64] : []);
  assertEquals(made.sort(), [png(0), png(2), png(4)].sort());
  for (const event of all) assert(event.type !== "failed" || event.error.final);
});

overEach("Where every one of them is refused, the request fails with what decides", async () => {
  const limit = () => Response.json({ error: { message: "slow down" } }, { status: 429 });
  const broken = () => Response.json({ error: { message: "oops" } }, { status: 500 });
  const refused = () => Response.json({ error: { message: "no", code: "moderation_blocked" } }, { status: 400 });
  const cases: [answers: (() => Response)[], kind: string, final: boolean][] = [
    [[limit, limit, limit], "exhausted", false],
    [[limit, broken, limit], "upstream", true],
    [[limit, limit, refused], "invalid", false],
  ];
  for (const [answers, kind, final] of cases) {
    await using host = startHost((_, index) => answers[index]?.() ?? new Response());
    const error = await failure(host.create({ n: 3 }, { images: { single: true } }).feed);
    assertEquals([error.kind, error.final], [kind, final]);
  }
});

overEach("A client that disconnects ends the host's work at once, at every stage", async () => {
  const stages: [about: string, answer: (request: Request) => Response | Promise<Response>][] = [
    ["before the head", () => Promise.withResolvers<Response>().promise],
    ["in the body", () => endless('{"data":[{"b64_json":"')],
    ["between events", () => endless(`: wait\n\n`, { "content-type": "text/event-stream" })],
  ];
  for (const [about, answer] of stages) {
    for (const how of ["signal", "cancel"]) {
      for (const n of [1, 2]) {
        const arrived: Promise<void>[] = [];
        const everyone = Promise.withResolvers<void>();
        await using host = startHost((request) => {
          arrived.push(new Promise((resolve) => request.signal.addEventListener("abort", () => resolve())));
          if (arrived.length === n) everyone.resolve();
          // The head alone must not wait for a handler that never ends.
          return about === "before the head" ? Promise.race([answer(request), gone(request)]) : answer(request);
        });
        const client = new AbortController();
        const { feed } = host.create({ n, stream: true }, { images: { single: true }, signal: client.signal });
        await everyone.promise;
        if (about === "before the head") {
          // `create` waits for the head, so no feed exists yet that could be cancelled.
          client.abort();
          await assertRejects(() => feed, DOMException);
        } else {
          const opened = await feed;
          const reading = opened.read();
          if (how === "signal") {
            client.abort();
            await assertRejects(() => reading, DOMException);
          } else {
            opened.cancel();
            opened.cancel();
            assertEquals(await reading, undefined);
          }
          opened.cancel();
          assertEquals(await opened.read(), undefined);
        }
        await Promise.all(arrived);
      }
    }
  }
});

overEach("A client that disconnects during an upload ends it", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const upstream = upstreamAt(listener.addr.port);
  const client = new AbortController();
  const images = [upload(new Uint8Array(40_000_000))];
  const feed = upstream.create(imageCall({ kind: "edit", images }, { signal: client.signal }));
  const connection = await listener.accept();
  const buffer = new Uint8Array(65_536);
  assertNotEquals(await connection.read(buffer), null);
  client.abort();
  await assertRejects(() => feed, DOMException);
  let bytes = 0;
  try {
    for (let read = await connection.read(buffer); read !== null; read = await connection.read(buffer)) bytes += read;
  } catch (error) {
    assert(error instanceof Deno.errors.ConnectionReset, String(error));
  }
  assert(bytes < 40_000_000, `${bytes}`);
  connection.close();
  listener.close();
  upstream.close();
});

overEach("Only the whole time counts until an image begins, and silence within it after that", async () => {
  const late = (headAfter: number, bodyAfter: number) => async () => {
    await new Promise((resolve) => setTimeout(resolve, headAfter));
    return new Response(
      new ReadableStream({
        async start(controller) {
          await new Promise((resolve) => setTimeout(resolve, bodyAfter));
          controller.enqueue(new TextEncoder().encode(`{"data":[{"b64_json":"${PNG}"}]}`));
          controller.close();
        },
      }),
    );
  };
  const limits = { firstByteMs: 20, idleMs: 40 };
  await using patient = startHost(late(120, 120), limits);
  assertEquals((await readAll(await patient.create().feed)).map(({ type }) => type), ["image"]);

  await using silent = startHost(() => endless('{"data":[{"b64_json":"'), { ...limits, totalMs: 10_000 });
  const error = await failure(silent.create().feed.then(readAll));
  assertEquals([error.kind, error.final], ["timeout", true]);

  await using slow = startHost((request) => gone(request), { ...limits, totalMs: 100 });
  const whole = await failure(slow.create().feed.then(readAll));
  assertEquals([whole.kind, whole.final], ["timeout", true]);
});

/** An answer that begins and never continues. */
function endless(text: string, headers: Record<string, string> = { "content-type": "application/json" }): Response {
  let sent = false;
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      if (!sent) controller.enqueue(new TextEncoder().encode(text));
      return sent ? new Promise(() => {}) : void (sent = true);
    },
  });
  return new Response(body, { headers });
}

/** Resolves when the caller has left. */
function gone(request: Request): Promise<Response> {
  return new Promise((resolve) => request.signal.addEventListener("abort", () => resolve(new Response())));
}
