import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import { PhaseTimers } from "../../lib/phase_timers.ts";
import { LARGE_BODY_BYTES } from "../../lib/scheduler.ts";
import { BodyBudget, BodyReservation, type BodyRules, JSON_MEMORY_FACTOR, RequestBody } from "../../lib/server/body.ts";
import { type Coding, inflate, readCoding } from "../../lib/server/inflate.ts";
import { seeded } from "../support/random.ts";
import { simulateTime } from "../support/simulated_time.ts";
import { exchange, head, post, startServer, TEST_LIMITS } from "./serve.ts";

const CODINGS: readonly Coding[] = ["gzip", "deflate"];
/** For bodies of any size. */
const FREE = { limitBytes: Infinity, reserve: () => {} };

async function compress(text: string | Uint8Array<ArrayBuffer>, coding: Coding): Promise<Uint8Array<ArrayBuffer>> {
  return await new Response(new Blob([text]).stream().pipeThrough(new CompressionStream(coding))).bytes();
}

/** Bytes as a string of one character each, as requests are written here. */
function binary(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
}

/** Incompressible bytes, the same each time. */
function noise(length: number): Uint8Array<ArrayBuffer> {
  const { below } = seeded(1);
  return Uint8Array.from({ length }, () => below(256));
}

Deno.test("readCoding() accepts supported codings, and names them in its error", () => {
  const cases: [header: string | undefined, coding: Coding | undefined][] = [
    [undefined, undefined],
    ["", undefined],
    ["identity", undefined],
    ["gzip", "gzip"],
    [" GZip ", "gzip"],
    ["x-gzip", "gzip"],
    ["deflate", "deflate"],
    ["identity, deflate", "deflate"],
  ];
  for (const [header, coding] of cases) {
    assertEquals(readCoding(new Headers(header === undefined ? {} : { "content-encoding": header })), coding, header);
  }
  for (const header of ["br", "zstd", "compress", "deflate-raw", "gzip, deflate", "toString"]) {
    const error = assertThrows(() => readCoding(new Headers({ "content-encoding": header })), GatewayError);
    assertEquals([error.kind, error.headers], ["unsupported_media_type", { "accept-encoding": "gzip, deflate" }]);
    assertStringIncludes(error.message, "send it as gzip, as deflate, or without one");
  }
});

Deno.test("inflate() restores content of any size, and reserves its memory before", async () => {
  for (const coding of CODINGS) {
    for (const bytes of [new Uint8Array(0), noise(1), noise(2048), noise(100_000), new Uint8Array(3_000_000)]) {
      const reserved: number[] = [];
      const inflated = await inflate(await compress(bytes, coding), {
        coding,
        limitBytes: bytes.byteLength,
        reserve: (size) => reserved.push(size),
      });
      assertEquals([reserved, inflated.byteLength], [[bytes.byteLength], bytes.byteLength]);
      assert(inflated.every((byte, index) => byte === bytes[index]));
    }
  }
});

Deno.test("inflate() rejects invalid, truncated and trailing data", async () => {
  for (const coding of CODINGS) {
    const whole = await compress(noise(10_000), coding);
    const other = await compress("{}", coding === "gzip" ? "deflate" : "gzip");
    const damaged = whole.with(5000, (whole[5000] ?? 0) ^ 0xff);
    const longer = new Uint8Array([...whole, 1, 2, 3]);
    // The platform accepts truncated deflate data: then the JSON is incomplete.
    const short = coding === "gzip" ? [new Uint8Array(0), whole.slice(0, -1), whole.slice(0, 20)] : [];
    for (const bytes of [other, damaged, longer, ...short]) {
      const error = await assertRejects(() => inflate(bytes, { coding, ...FREE }), GatewayError);
      assertEquals([error.kind, error.message], ["invalid", `Cannot read the body: it is not ${coding}, or not whole`]);
    }
  }
});

Deno.test("inflate() rejects a bomb before storing any of it, whatever its trailer says", async () => {
  const limitBytes = 1_000_000;
  const zeros = new Uint8Array(16_000_000);
  const gzip = await compress(zeros, "gzip");
  const stating = (size: number) => {
    const bytes = gzip.slice();
    new DataView(bytes.buffer).setUint32(bytes.length - 4, size, true);
    return bytes;
  };
  const cases: [coding: Coding, bytes: Uint8Array<ArrayBuffer>, error: string, reserved: number[]][] = [
    ["gzip", gzip, "Cannot read the body: it has more than 1000000 bytes", []],
    ["deflate", await compress(zeros, "deflate"), "Cannot read the body: it has more than 1000000 bytes", []],
    ["gzip", stating(1000), "Cannot read the body: it is longer than its trailer states", [1000]],
    ["gzip", stating(limitBytes), "Cannot read the body: it is longer than its trailer states", [limitBytes]],
    // Two bodies, one after the other: the trailer is that of the second.
    ["gzip", new Uint8Array([...await compress("a", "gzip"), ...await compress("bb", "gzip")]), "not gzip", [2]],
    // So few bytes cannot be so much.
    ["gzip", (await compress("a", "gzip")).with(-2, 1), "Cannot read the body: it is not gzip, or not whole", []],
  ];
  for (const [coding, bytes, message, expected] of cases) {
    const reserved: number[] = [];
    const error = await assertRejects(
      () => inflate(bytes, { coding, limitBytes, reserve: (size) => reserved.push(size) }),
      GatewayError,
    );
    assertStringIncludes(error.message, message);
    assertEquals(reserved, expected, message);
  }
});

Deno.test("inflate() yields to the event loop, even for long empty input", async () => {
  // Stored blocks of no bytes, in a stream of deflate: 5 bytes each.
  const block = [0, 0, 0, 0xff, 0xff];
  const empty = await compress("", "deflate");
  const bytes = new Uint8Array(2 + 400_000 * 5 + empty.length - 2);
  bytes.set(empty.subarray(0, 2));
  for (let at = 2; at < bytes.length - empty.length; at += 5) bytes.set(block, at);
  bytes.set(empty.subarray(2), bytes.length - empty.length + 2);
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  assertEquals((await inflate(bytes, { coding: "deflate", ...FREE })).length, 0);
  clearInterval(timer);
  assert(turns > 0);
});

/** Reads a body as a handler does. */
async function readJson(request: Request, rules: BodyRules): Promise<void> {
  const body = new RequestBody(request, rules, { record: { bytesIn: 0 }, bodyArrived() {} });
  try {
    await body.readJson();
  } finally {
    body.release(true);
  }
}

Deno.test("large bodies are decompressed one at a time, and at most 64 wait", async () => {
  // Deflate could expand this many bytes to a larger body. These bytes expand to a smaller one, in less CPU time.
  const size = 400_000;
  const bytes = new Uint8Array(size);
  bytes.set(noise(LARGE_BODY_BYTES / 1_000));
  const body = await compress(bytes, "deflate");
  const budget = new BodyBudget();
  // On a busy machine, all of them together take longer than one of them may wait.
  using _time = simulateTime(0);
  let peak = 0;
  const rulesOf = () => {
    const reservation = new BodyReservation(budget, "k");
    return {
      headers: new Headers({ "content-encoding": "deflate" }),
      limits: { ...TEST_LIMITS, jsonBytes: size, budgetBytes: Infinity },
      budget: {
        bytes: 0,
        reserve(bytes: number, limit: number) {
          reservation.reserve(bytes, limit);
          peak = Math.max(peak, budget.usedBytes);
        },
        hold: (bytes: number, limit: number) => reservation.hold(bytes, limit),
        keep() {},
        release: (bytes?: number) => reservation.release(bytes),
      },
      timers: new PhaseTimers(),
    };
  };
  const read = () => readJson(new Request("http://a/", { method: "POST", body }), rulesOf());
  const settled = await Promise.allSettled(Array.from({ length: 70 }, read));
  const kinds = Map.groupBy(
    settled.flatMap((result) => result.status === "rejected" ? [result.reason] : []),
    ({ kind, retryAfterMs }) => `${kind} ${retryAfterMs}`,
  );
  assertEquals([...kinds].map(([kind, errors]) => [kind, errors.length]), [["invalid undefined", 65], [
    "limited 2000",
    5,
  ]]);
  assert(peak <= 70 * body.length + size * JSON_MEMORY_FACTOR, `${peak}`);
  assertEquals(budget.usedBytes, 0);
  assertEquals((await assertRejects(read, GatewayError)).kind, "invalid");
});

Deno.test("unsupported and multiple codings are 415 in the shape of the protocol", async () => {
  await using server = startServer();
  for (const coding of ["br", "zstd", "gzip, gzip", "deflate, gzip"]) {
    for (const [path, type] of [["/v1/echo", undefined], ["/anthropic/v1/echo", "error"]] as const) {
      const answer = await exchange(server.port, [post(path, "{}", { "content-encoding": coding })]);
      const { type: bodyType, error } = JSON.parse(answer.body);
      assertEquals([answer.status, bodyType, error.type], [415, type, "invalid_request_error"], `${path} ${coding}`);
    }
  }
});

Deno.test("compressed bodies are read with any framing", async () => {
  await using server = startServer();
  const text = JSON.stringify({ text: "Grüße ".repeat(2000) });
  for (const coding of CODINGS) {
    const body = binary(await compress(text, coding));
    const chunked = head("POST /v1/echo", { "transfer-encoding": "chunked", "content-encoding": coding }) +
      `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    for (const request of [post("/v1/echo", body, { "content-encoding": coding }), chunked]) {
      const response = await exchange(server.port, [request]);
      assertEquals([response.status, JSON.parse(response.body).body], [200, JSON.parse(text)]);
    }
  }
});

Deno.test("a body that decompresses beyond the limit is 413 and releases its memory", async () => {
  await using server = startServer();
  const bomb = binary(await compress(new Uint8Array(50_000_000), "gzip"));
  const exact = JSON.stringify({ text: "x".repeat(TEST_LIMITS.jsonBytes - 11) });
  for (let run = 0; run < 5; run++) {
    const refused = await exchange(server.port, [post("/v1/echo", bomb, { "content-encoding": "gzip" })]);
    assertEquals([refused.status, refused.body.includes(String(TEST_LIMITS.jsonBytes))], [413, true]);
    for (const body of ["no gzip", "", binary((await compress(exact, "deflate")).slice(0, 40))]) {
      for (const coding of CODINGS) {
        const broken = await exchange(server.port, [post("/v1/echo", body, { "content-encoding": coding })]);
        assertEquals(broken.status, 400);
      }
    }
    const read = await exchange(server.port, [
      post("/v1/echo", binary(await compress(exact, "gzip")), { "content-encoding": "gzip" }),
    ]);
    assertEquals(read.status, 200);
  }
  const over = binary(await compress(`${exact} `, "gzip"));
  assertEquals((await exchange(server.port, [post("/v1/echo", over, { "content-encoding": "gzip" })])).status, 413);
});

Deno.test("a compressed body that is not JSON releases its memory once", async () => {
  const budget = new BodyBudget();
  const timers = new PhaseTimers();
  for (const coding of CODINGS) {
    const request = new Request("http://a/", {
      method: "POST",
      body: await compress(`{"a":"${"b".repeat(9000)}"`, coding),
    });
    const headers = new Headers({ "content-encoding": coding });
    const rules = { headers, limits: TEST_LIMITS, budget: new BodyReservation(budget, "k"), timers };
    await assertRejects(() => readJson(request, rules), GatewayError);
    assertEquals(budget.usedBytes, 0, coding);
  }
});
