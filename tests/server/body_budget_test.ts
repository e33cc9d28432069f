import { assert, assertEquals, assertLess, assertStringIncludes, assertThrows } from "@std/assert";
import { BodyBudget, BodyReservation } from "../../lib/server/body_budget.ts";
import { GatewayError } from "../../lib/errors.ts";
import { yieldToEventLoop } from "../../lib/scheduler.ts";
import { until } from "../support/soon.ts";
import { exchange, head, post, type RawResponse, startServer, TEST_LIMITS } from "./serve.ts";

const CHUNKED = head("POST /v1/echo", { "transfer-encoding": "chunked" });

/** One chunk of a chunked body. */
function chunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}

function messageOf(response: RawResponse): string {
  return JSON.parse(response.body).error.message;
}

/** Pieces with a pause before each but the first, because these tests are about time. */
async function* slowly(pieces: string[], pauseMs: number): AsyncGenerator<string> {
  for (const [index, piece] of pieces.entries()) {
    if (index > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    yield piece;
  }
}

/** Time limits that no test reaches. */
const PATIENT = { ...TEST_LIMITS, gapMs: 60_000, graceMs: 60_000, totalMs: 60_000 };

/** All but the last byte, and that one later. */
async function* inTwo(text: string, later: Promise<void>): AsyncGenerator<string> {
  yield text.slice(0, -1);
  await later;
  yield text.slice(-1);
}

Deno.test("a JSON body is read completely with any framing and media type", async () => {
  await using server = startServer();
  const body = '{"a":1,"b":["x",null]}';
  const requests = [
    ...["application/json", "application/json; charset=UTF-8", "text/plain", "application/x-www-form-urlencoded", "a/b"]
      .map((type) => post("/v1/echo", body, { "content-type": type })),
    post("/v1/echo", body),
    post("/v1/echo", `\u00ef\u00bb\u00bf${body}`),
    post("/v1/echo", body, { "content-encoding": "identity" }),
    CHUNKED + [...body].map(chunk).join("") + "0\r\n\r\n",
  ];
  for (const request of requests) {
    const response = await exchange(server.port, [request]);
    assertEquals([response.status, JSON.parse(response.body)], [200, { body: JSON.parse(body), again: true }], request);
  }
  const large = JSON.stringify({ text: "x".repeat(90_000) });
  for (const request of [post("/v1/echo", large), `${CHUNKED}${chunk(large)}0\r\n\r\n`]) {
    assertEquals(JSON.parse((await exchange(server.port, [request])).body).body, JSON.parse(large));
  }
});

Deno.test("a body may contain U+FFFD", async () => {
  await using server = startServer();
  const { status, body } = await exchange(server.port, [post("/v1/echo", '{"a":"\u00ef\u00bf\u00bd"}')]);
  assertEquals([status, JSON.parse(body).body], [200, { a: "\ufffd" }]);
  const broken = await exchange(server.port, [post("/v1/echo", '{"a":"\u00ef\u00bf\u00bd\u00ff"}')]);
  assertEquals(broken.status, 400);
  assertStringIncludes(messageOf(broken), "byte 9 is not UTF-8");
});

Deno.test("a long body is read like a short one, and its errors are found", async () => {
  const limits = { ...TEST_LIMITS, jsonBytes: 8_000_000, budgetBytes: 32_000_000 };
  await using server = startServer({ limits });
  const ask = async (body: string) => await exchange(server.port, [post("/v1/echo", body)]);
  const zeros = `[${"-0,".repeat(30_000)}0]`;
  for (const [head, tail] of [['{"t":1.0,"a":', "}"], ['\u00ef\u00bb\u00bf{"a":', "}"]]) {
    const { status, body } = await ask(head + zeros + tail);
    assertEquals([status, body.includes(zeros), body.includes("1.0")], [200, true, false]);
  }
  const text = "\\n".repeat(600_000);
  assertEquals(JSON.parse((await ask(`{"a":"${text}\u00c3\u00a9"}`)).body).body, { a: `${"\n".repeat(600_000)}é` });
  const cases: [body: string, message: string][] = [
    [`{"a":"${text}\\x"}`, "at position 1200007 (line 1, column 1200008)"],
    [`{\n\n"a":"${text}",}`, "at position 1200010 (line 3, column 1200008)"],
    [`{"a":"${text}\u00ff"}`, "byte 1200006 is not UTF-8"],
    [`["${text}"]`, "expected a JSON object"],
    [" ".repeat(1_200_000), "it is empty"],
  ];
  for (const [body, message] of cases) {
    const response = await ask(body);
    assertEquals(response.status, 400, message);
    assertStringIncludes(messageOf(response), message);
  }
});

Deno.test("a transfer coding in addition to chunked is rejected", async () => {
  await using server = startServer();
  for (const coding of ["gzip, chunked", "x, chunked"]) {
    const request = `${head("POST /v1/echo", { "transfer-encoding": coding })}${chunk("{}")}0\r\n\r\n`;
    const response = await exchange(server.port, [request]);
    assertEquals([response.status, response.headers.get("connection")], [415, "close"], coding);
    assertStringIncludes(messageOf(response), "Transfer-Encoding");
  }
});

Deno.test("numbers keep their text below the parameters, and are numbers among them", async () => {
  await using server = startServer();
  const { body } = await exchange(server.port, [
    post("/v1/echo", '{"t":1.0,"a":[[[{"id":12345678901234567890,"x":1.0}]]]}'),
  ]);
  assertStringIncludes(body, '{"t":1,"a":[[[{"id":12345678901234567890,"x":1.0}]]]}');
});

Deno.test("media types that are not JSON are 415 with the expected one", async () => {
  await using server = startServer();
  const cases: Record<string, string>[] = [
    { "content-encoding": "br" },
    { "content-encoding": "zstd" },
    { "content-encoding": "gzip" },
    { "content-type": "multipart/form-data; boundary=x" },
    { "content-type": "application/json; charset=latin1" },
    { "content-type": 'application/json; charset="utf-16"' },
  ];
  for (const headers of cases) {
    const response = await exchange(server.port, [post("/v1/echo", "{}", headers)]);
    assertEquals(response.status, 415, JSON.stringify(headers));
    assertStringIncludes(messageOf(response), "send");
  }
});

Deno.test("an invalid body is reported with the position of the error", async () => {
  await using server = startServer();
  const cases: [body: string, part: string][] = [
    ["", "it is empty"],
    [" \n\t", "it is empty"],
    ["\u00ef\u00bb\u00bf", "it is empty"],
    ["[]", "expected a JSON object"],
    ["null", "expected a JSON object"],
    ["12345678901234567890", "expected a JSON object"],
    ['{"a":1,\n"b":}', "Expected a value at position 12 (line 2, column 5)"],
    ['{"a":"\\x"}', "at position 7 (line 1, column 8)"],
    ['{"a":"\u00e9"}', "byte 6 is not UTF-8"],
    ['{"a":"\u00c3\u00a9\u00ed\u00a0\u0080"}', "byte 8 is not UTF-8"],
    ['{"a":"\u00f0\u009f\u0098', "byte 6 is not UTF-8"],
    ['{"model":1,"model":2}', '"model" comes twice'],
    ['{"tools":[{"function":{"name":"f"},"type":"web_search","type":"function"}]}', '"type" comes twice'],
    ['{"a":[{"b":[{"c":{"url":"x","u\\u0072l":"y"}}]}]}', '"url" comes twice'],
    [`${'{"a":'.repeat(65)}1${"}".repeat(65)}`, "at most 64 levels"],
    [`{"a":[${"1,".repeat(49_000)}1]`, 'Expected "," or "}"'],
    ["a=b&c=d", "Expected a value at position 0 (line 1, column 1)"],
  ];
  for (const [body, part] of cases) {
    const response = await exchange(server.port, [post("/v1/echo", body)]);
    assertEquals(response.status, 400, body.slice(0, 40));
    assertStringIncludes(messageOf(response), part);
  }
  const native = await exchange(server.port, [post("/anthropic/v1/echo", "{")]);
  assertEquals([native.status, JSON.parse(native.body).type], [400, "error"]);
  const none = await exchange(server.port, [head("POST /v1/echo")]);
  assertEquals(none.status, 400);
  assertStringIncludes(messageOf(none), "it is empty");
});

Deno.test("a short invalid body is rejected without yielding", async () => {
  await using server = startServer();
  let over = 0;
  const waiting = Array.from({ length: 100 }, () => yieldToEventLoop().then(() => over++));
  const { status } = await exchange(server.port, [post("/v1/echo", '{"a":1,}')]);
  assertEquals(status, 400);
  assertLess(over, 100);
  await Promise.all(waiting);
});

Deno.test("__proto__ in a body is plain data", async () => {
  await using server = startServer();
  const text = '{"__proto__":{"a":1},"constructor":{"prototype":{}}}';
  assertStringIncludes((await exchange(server.port, [post("/v1/echo", text)])).body, text);
});

Deno.test("a body over the limit is 413, at once if declared, else when the limit is passed", async () => {
  await using server = startServer();
  const announced = await exchange(server.port, [head("POST /v1/echo", { "content-length": "100001" })]);
  assertEquals([announced.status, announced.headers.get("x-request-id") !== null], [413, true]);
  const huge = await exchange(server.port, [head("POST /v1/echo", { "content-length": "99999999999999999999" })]);
  assert(huge.status === 413 || huge.status === 400, String(huge.status));

  let sent = 0;
  function* endless(): Generator<string> {
    yield CHUNKED;
    for (; sent < 10_000; sent++) yield chunk("x".repeat(1000));
  }
  assertEquals((await exchange(server.port, endless())).status, 413);
  const exact = JSON.stringify({ text: "x".repeat(TEST_LIMITS.jsonBytes - 11) });
  assertEquals(exact.length, TEST_LIMITS.jsonBytes);
  assertEquals((await exchange(server.port, [`${CHUNKED}${chunk(exact)}0\r\n\r\n`])).status, 200);
  assertEquals((await exchange(server.port, [`${CHUNKED}${chunk(exact + " ")}0\r\n\r\n`])).status, 413);
});

Deno.test("a slow body is 408: by silence, rate and total time", async () => {
  const small = head("POST /v1/echo", { "content-length": "200" });
  const large = head("POST /v1/echo", { "content-length": "50000" });
  const kilobyte = "x".repeat(1000);
  const strict = { ...TEST_LIMITS, gapMs: 150, graceMs: 300 };
  const roomy = { ...TEST_LIMITS, gapMs: 60_000, graceMs: 300 };
  const cases: [name: string, limits: typeof TEST_LIMITS, pieces: string[], pauseMs: number, atMs: number][] = [
    ["silence after the head", strict, [large], 0, 150],
    ["silence after the head of a chunked body", strict, [CHUNKED], 0, 150],
    ["silence within", strict, [large, kilobyte, kilobyte], 50, 200],
    ["small body that stops", roomy, [small, "{"], 50, 300],
    ["drips of a small body", roomy, [small, ..."{".repeat(100)], 20, 300],
    ["drips of chunks", roomy, [CHUNKED, ...Array.from({ length: 100 }, () => chunk("1"))], 20, 300],
    [
      "fast enough, but without end",
      { ...roomy, totalMs: 500 },
      [CHUNKED, ...Array.from({ length: 60 }, () => chunk(kilobyte))],
      20,
      500,
    ],
  ];
  await Promise.all(cases.map(async ([name, limits, pieces, pauseMs, atMs]) => {
    await using server = startServer({ limits });
    const start = performance.now();
    const response = await exchange(server.port, slowly(pieces, pauseMs));
    assertEquals(response.status, 408, name);
    const took = performance.now() - start;
    assert(took > atMs - 60, `${name}: ${took} ms`);
    // Any other limit ends it much later.
    assertLess(took, 20_000, name);
  }));
});

Deno.test("a slow body within the limits is read", async () => {
  await using server = startServer({ limits: { ...TEST_LIMITS, graceMs: 200 } });
  const text = JSON.stringify({ text: "x".repeat(20_000) });
  const pieces = Array.from({ length: 21 }, (_, index) => text.slice(index * 1000, (index + 1) * 1000));
  const response = await exchange(
    server.port,
    slowly([head("POST /v1/echo", { "content-length": String(text.length) }), ...pieces], 20),
  );
  assertEquals(response.status, 200);
});

Deno.test("slow bodies do not delay others", async () => {
  await using server = startServer({ limits: PATIENT });
  const others = Promise.withResolvers<void>();
  let ended = 0;
  const slow = [1, 2, 3].map(async () => {
    const response = await exchange(server.port, inTwo(post("/v1/echo", "{}"), others.promise));
    ended++;
    return response;
  });
  for (let run = 0; run < 5; run++) {
    assertEquals((await exchange(server.port, [post("/v1/echo", "{}")])).status, 200);
  }
  assertEquals(ended, 0);
  others.resolve();
  for (const response of await Promise.all(slow)) assertEquals(response.status, 200);
});

Deno.test("bodies share one budget, which is released", async () => {
  await using server = startServer({ limits: PATIENT });
  const big = JSON.stringify({ text: "x".repeat(89_000) });
  for (let run = 0; run < 5; run++) {
    assertEquals((await exchange(server.port, [post("/v1/echo", big)])).status, 200);
    assertEquals((await exchange(server.port, [post("/v1/echo", big.slice(1))])).status, 400);
  }
  // A stalled body holds its bytes.
  const others = Promise.withResolvers<void>();
  const held = exchange(server.port, inTwo(post("/v1/echo", big), others.promise));
  let refused = await exchange(server.port, [post("/v1/echo", big)]);
  await until("a refusal", async () => {
    if (refused.status === 200) refused = await exchange(server.port, [post("/v1/echo", big)]);
    return refused.status !== 200;
  });
  assertEquals([refused.status, refused.headers.get("retry-after")], [429, "1"]);
  others.resolve();
  assertEquals((await held).status, 200);
  assertEquals((await exchange(server.port, [post("/v1/echo", big)])).status, 200);
});

Deno.test("a client that disconnects during its body releases its memory", async () => {
  await using server = startServer({ limits: { ...TEST_LIMITS, gapMs: 1000 } });
  const half = "x".repeat(60_000);
  for (const request of [head("POST /v1/echo", { "content-length": "99000" }) + half, CHUNKED + chunk(half)]) {
    for (let run = 0; run < 3; run++) {
      const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
      await connection.write(new TextEncoder().encode(request));
      connection.close();
    }
  }
  const big = JSON.stringify({ text: "x".repeat(89_000) });
  let status = 0;
  for (let run = 0; run < 100 && status !== 200; run++) {
    ({ status } = await exchange(server.port, [post("/v1/echo", big)]));
  }
  assertEquals(status, 200);
  assertEquals(server.observed.logs, []);
});

Deno.test("BodyBudget counts reserved and released bytes", () => {
  const budget = new BodyBudget();
  const [a, b] = [new BodyReservation(budget), new BodyReservation(budget)];
  a.reserve(60, 100);
  b.reserve(40, 100);
  assertLimited(() => b.reserve(1, 100));
  a.release(60);
  assertEquals(budget.usedBytes, 40);
});

Deno.test("bodies of one key take at most three quarters of the budget, a single body all of it", () => {
  const budget = new BodyBudget();
  const [a1, a2, b] = [
    new BodyReservation(budget, "a"),
    new BodyReservation(budget, "a"),
    new BodyReservation(budget, "b"),
  ];
  a1.reserve(100, 100);
  a1.release(60);
  a2.reserve(35, 100);
  assertLimited(() => a2.reserve(1, 100));
  assertLimited(() => a1.reserve(1, 100));
  b.reserve(25, 100);
  assertLimited(() => b.reserve(1, 100));
  a1.release(40);
  a2.release(35);
  b.reserve(50, 100);
  b.reserve(25, 100);
  b.release(100);
  assertEquals(budget.usedBytes, 0);

  // A body that is kept for its answer is no longer read.
  a1.reserve(100, 100);
  a1.keep(26);
  assertLimited(() => a2.reserve(74, 100));
  a2.reserve(49, 100);
  a2.release();
  a1.release(1);
  a2.reserve(75, 100);
  assertLimited(() => b.reserve(1, 100));
  a1.release();
  assertLimited(() => a1.reserve(1, 100));
  a2.release();
  assertEquals([budget.usedBytes, budget.keptBytes], [0, 0]);
});

function assertLimited(reserve: () => void): void {
  const error = assertThrows(reserve, GatewayError);
  assertEquals([error.kind, error.retryAfterMs], ["limited", 1000]);
}
