/** Recorded answers with random damage: every reader returns legal events or an error of the upstream. */
import { assert, assertEquals } from "@std/assert";
import { isObject, type Json, type JsonObject, parseJson, writeJson } from "../../lib/json/mod.ts";
import { aggregateEvents, eventsOf } from "../../lib/protocols/canonical/aggregate_events.ts";
import type { Frame } from "../../lib/protocols/codec.ts";
import { UPSTREAM_CODECS } from "../../lib/upstreams/protocols.ts";
import { RECORDED } from "../golden/recorded.ts";
import { type Random, seeded } from "../support/random.ts";
import { rounds } from "../support/skip.ts";
import { checkGrammar } from "./canonical/event_grammar.ts";
import { wholeOf } from "./whole_answers.ts";

const STREAMS = rounds(10_000);
const ANSWERS = rounds(4_000);

/** Values that no upstream should send where something else is expected. */
const JUNK: readonly Json[] = [null, true, 0, -1, 1.5, 1e300, "", "x", "message", "completed", "[DONE]"]
  .concat([[], {}, [null], [[]], ["x"], { a: 1 }, { error: {} }, { text: 7 }, { type: "reasoning" }] as never[]);

/** The values with members in a value, itself included. */
function holdersIn(value: Json): (JsonObject | Json[])[] {
  if (!Array.isArray(value) && !isObject(value)) return [];
  return [value, ...Object.values(value).flatMap((member) => holdersIn(member ?? null))];
}

/** Replaces or removes one member anywhere in a value. */
function damageValue(value: Json, random: Random): void {
  const holders = holdersIn(value).filter((holder) => Object.keys(holder).length > 0);
  if (holders.length === 0) return;
  const holder = random.pick(holders);
  const name = random.pick(Object.keys(holder));
  if (random.chance(0.2) && !Array.isArray(holder)) delete holder[name];
  else (holder as JsonObject)[name] = structuredClone(random.pick(JUNK));
}

/** The JSON text of a frame with another value, or with a part of its text lost or replaced. */
function damageText(text: string, random: Random): string {
  const at = random.below(text.length + 1);
  const kind = random.below(8);
  if (kind === 0) return text.slice(0, at);
  if (kind === 1) return text.slice(0, at) + '{}[]",:0a\u0000\ud800'.charAt(random.below(11)) + text.slice(at + 1);
  try {
    const value = parseJson(text);
    damageValue(value, random);
    return writeJson(value);
  } catch {
    return text + text;
  }
}

/** Loses, repeats, moves, inserts or damages frames. */
function damageFrames(frames: Frame[], pool: readonly Frame[][], random: Random): void {
  const at = random.below(frames.length + 1);
  const frame = frames[at] ?? { data: "{}" };
  const place = random.below(frames.length + 1);
  switch (random.below(8)) {
    case 0:
      return void frames.splice(at, 1);
    case 1:
      return void frames.splice(place, 0, frame);
    case 2:
      return void frames.splice(place, 0, ...frames.splice(at, 1));
    case 3:
      return void frames.splice(at);
    case 4:
      return void frames.splice(at, 0, ...random.pick(pool).slice(random.below(3)));
    default:
      frames.splice(at, 1, { ...frame, data: damageText(frame.data, random) });
  }
}

for (const [protocol, codec] of Object.entries(UPSTREAM_CODECS)) {
  const recorded = RECORDED.filter((stream) => stream.protocol === protocol && stream.frames.length > 0);

  Deno.test(`${protocol}: events of any damaged stream obey the grammar and end once`, () => {
    const pool = recorded.map(({ frames }) => frames);
    const count = { finish: 0, error: 0 };
    for (let seed = 0; seed < STREAMS; seed++) {
      const random = seeded(seed);
      const frames = [...random.pick(pool)];
      for (let times = random.below(4); times >= 0; times--) damageFrames(frames, pool, random);
      try {
        const reader = codec.reader({ issuer: "x" });
        const grammar = checkGrammar();
        const events = [...frames.flatMap((frame) => reader.push(frame)), ...reader.end()];
        for (const event of events) grammar.push(event);
        grammar.end();
        const [end, ...others] = events.filter((event) => event.type === "finish" || event.type === "error");
        assert(end !== undefined && others.length === 0);
        count[end.type]++;
        // An internal error would be a bug of the gateway.
        if (end.type === "error") assert(end.error.kind !== "internal", String(end.error.cause));
      } catch (error) {
        const data = frames.map(({ data }) => data).join("\n").slice(0, 4_000);
        throw new Error(`seed ${seed}: ${error}\n${data}`, { cause: error });
      }
    }
    // If one kind of end were rare, the test would prove little.
    assert(count.finish > STREAMS / 12 && count.error > STREAMS / 12, JSON.stringify(count));
  });

  Deno.test(`${protocol}: a damaged whole answer is a reply or an error of the upstream`, () => {
    const bodies = recorded.map(wholeOf).filter((body) => body !== undefined).map(writeJson);
    let read = 0;
    for (let seed = 0; seed < ANSWERS; seed++) {
      const random = seeded(seed);
      const body = parseJson(random.pick(bodies));
      for (let times = random.below(3); times >= 0; times--) damageValue(body, random);
      assert(isObject(body));
      const at = `seed ${seed}: ${writeJson(body)}`;
      try {
        const reply = codec.readReply(body, { issuer: "x" });
        aggregateEvents(eventsOf(reply));
        read++;
        const { finish, usage } = codec.readSummary(body, { issuer: "x" });
        assertEquals([finish, usage], [reply.finish, reply.usage], at);
      } catch (error) {
        assertEquals(error instanceof Error ? error.name : error, "GatewayError", at);
      }
    }
    assert(read > ANSWERS / 20 && read < ANSWERS, `${read} were read`);
  });
}
