import { assert, assertEquals } from "@std/assert";
import type { z } from "zod";
import { chatRequest } from "../../lib/protocols/chat/schema.ts";
import { schema as messagesRequest } from "../../lib/protocols/messages/schema.ts";
import { schema as responsesRequest } from "../../lib/protocols/responses/schema.ts";
import { cutAfterFault, fastPathValidator } from "../../lib/protocols/fast_path_validator.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import type { Protocol } from "../../lib/protocols/canonical/types.ts";
import { crossRequest, REQUESTS } from "../golden/requests.ts";
import { type Random, seeded } from "../support/random.ts";
import { rounds } from "../support/skip.ts";

const SCHEMAS: Readonly<Record<string, z.ZodType>> = {
  chat: chatRequest,
  messages: messagesRequest,
  responses: responsesRequest,
};

/** Rounds of changes to each body. */
const ROUNDS = rounds(40);

/** Bodies that upstreams of each protocol are sent: good ones, of all kinds. */
const BODIES = Object.keys(SCHEMAS).map((protocol) => [protocol, bodiesFor(protocol)] as const);

function bodiesFor(protocol: string): JsonObject[] {
  return REQUESTS.flatMap(({ from, bodies }) =>
    Object.values(bodies).flatMap((body) => translated(from, protocol, body))
  );
}

function translated(from: Protocol, to: string, body: JsonObject): JsonObject[] {
  try {
    return [crossRequest(from, to, body).body];
  } catch (error) {
    if (error instanceof GatewayError) return [];
    throw error;
  }
}

const STRAY: readonly unknown[] = [null, true, 0, -1, 1.5, 2 ** 53, 1e300, "", "x", "y".repeat(2_000), [], {}, [1], {
  type: "text",
}, JSON.parse('{"__proto__":1}')];

/** The value with one member changed: replaced, removed, or renamed. */
function changed(value: unknown, random: Random): unknown {
  const stray = () => random.pick(STRAY);
  if (typeof value !== "object" || value === null || random.chance(0.15)) return stray();
  const names = Object.keys(value);
  if (names.length === 0) return stray();
  const name = random.pick(names);
  if (Array.isArray(value)) return value.map((item, index) => String(index) === name ? changed(item, random) : item);
  const entries = Object.entries(value);
  if (random.chance(0.1)) return Object.fromEntries(entries.filter(([other]) => other !== name));
  return Object.fromEntries(entries.map(([other, item]) => [other, other === name ? changed(item, random) : item]));
}

Deno.test("fastPathValidator() never accepts a body that the schema rejects", () => {
  const random = seeded(7);
  let [sure, refused] = [0, 0];
  for (const [protocol, bodies] of BODIES) {
    const schema = SCHEMAS[protocol];
    if (schema === undefined) continue;
    const check = fastPathValidator(schema);
    for (const body of bodies) {
      for (let round = 0; round < ROUNDS; round++) {
        const other = changed(body, random);
        const isGood = schema.safeParse(other).success;
        if (check(other)) {
          sure++;
          assert(isGood, `${protocol}: ${JSON.stringify(other).slice(0, 500)}`);
        }
        if (!isGood) refused++;
      }
    }
  }
  assert(sure > 100 && refused > 100, `${sure} were sure, ${refused} refused`);
});

Deno.test("fastPathValidator() accepts nearly all valid bodies", () => {
  for (const [protocol, bodies] of BODIES) {
    const schema = SCHEMAS[protocol];
    if (schema === undefined) continue;
    const good = bodies.filter((body) => schema.safeParse(body).success);
    const check = fastPathValidator(schema);
    const unsure = good.filter((body) => !check(body));
    assert(good.length > 50, `${protocol}: ${good.length}`);
    assertEquals(unsure.map((body) => JSON.stringify(body).slice(0, 300)), []);
  }
});

Deno.test("a body with thousands of faults is checked up to the first one, with the same error", () => {
  const part = { type: "text", text: "x" };
  const wrong = { type: "text", text: 1 };
  const contents = [part, ...Array.from({ length: 900 }, () => wrong)];
  const cases: [z.ZodType, JsonObject, (cut: JsonObject) => unknown][] = [
    [chatRequest, { model: "m", messages: [{ role: "user", content: "x" }, { role: "user", content: contents }] }, (
      { messages },
    ) => messages],
    [messagesRequest, {
      model: "m",
      max_tokens: 1,
      messages: [{ role: "user", content: "x" }, { role: "user", content: contents }, { role: "user", content: 1 }],
    }, ({ messages }) => messages],
  ];
  for (const [schema, body, messagesOf] of cases) {
    const cut = cutAfterFault(body, fastPathValidator(schema));
    assertEquals(messagesOf(cut), [{ role: "user", content: "x" }, { role: "user", content: [part, wrong] }]);
    const first = (value: JsonObject) => schema.safeParse(value).error?.issues[0];
    assertEquals(JSON.stringify(first(cut)?.path), JSON.stringify(first(body)?.path));
  }
});

Deno.test("a list that is too long is refused before its items are checked", () => {
  const messages = Array.from({ length: 5_000 }, () => 1);
  const body: JsonObject = { model: "m", messages };
  const cut = cutAfterFault(body, fastPathValidator(chatRequest));
  assertEquals(cut.messages, messages);
  assertEquals(chatRequest.safeParse(body).error?.issues.map(({ code }) => code), ["too_big"]);
});
