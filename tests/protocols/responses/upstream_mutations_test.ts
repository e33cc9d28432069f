import { assert, assertEquals } from "@std/assert";
import { checkGrammar } from "../../../lib/canonical/grammar.ts";
import { isObject, type Json, type JsonObject } from "../../../lib/json.ts";
import type { Frame } from "../../../lib/protocols/codec.ts";
import { responsesUpstream } from "../../../lib/protocols/responses/upstream.ts";
import { streamEvents, STREAMS } from "./upstream_streams.ts";

const ROUNDS = 150;

/** A generator of numbers in [0, 1), the same for the same seed. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const JUNK: Json[] = [null, 0, -1, 1e9, "", "x", "message", "completed", true, [], {}, [null], { type: "reasoning" }];

/** Puts junk in the place of a member, or takes it out, somewhere inside. */
function corrupt(value: JsonObject, random: () => number): void {
  const names = Object.keys(value);
  const name = names[Math.floor(random() * names.length)];
  if (name === undefined) return;
  const member = value[name];
  if (isObject(member) && random() < 0.7) return corrupt(member, random);
  const [first] = Array.isArray(member) ? member : [];
  if (isObject(first) && random() < 0.7) return corrupt(first, random);
  if (random() < 0.3) delete value[name];
  else value[name] = JUNK[Math.floor(random() * JUNK.length)];
}

function mutate(events: JsonObject[], random: () => number): Frame[] {
  const copy = structuredClone(events);
  const pick = () => Math.floor(random() * copy.length);
  for (let times = Math.floor(random() * 4); times >= 0 && copy.length > 1; times--) {
    const at = pick();
    const [event] = copy.slice(at, at + 1);
    assert(event !== undefined);
    const kind = random();
    if (kind < 0.2) copy.splice(at, 1);
    else if (kind < 0.4) copy.splice(pick(), 0, structuredClone(event));
    else if (kind < 0.6) copy.splice(pick(), 0, ...copy.splice(at, 1));
    else if (kind < 0.7) copy.splice(at);
    else corrupt(event, random);
  }
  const frames = copy.map((event): Frame => ({ data: JSON.stringify(event) }));
  const broken = frames[Math.floor(random() * frames.length)];
  if (random() < 0.1 && broken !== undefined) broken.data = broken.data.slice(0, Math.floor(random() * 40));
  return frames;
}

Deno.test("reader() obeys the grammar whatever becomes of a stream", () => {
  let finished = 0;
  let failed = 0;
  for (const [number, name] of Object.keys(STREAMS).entries()) {
    const events = streamEvents(name);
    const other = streamEvents(Object.keys(STREAMS)[(number * 7 + 3) % Object.keys(STREAMS).length] ?? name);
    for (let round = 0; round < ROUNDS; round++) {
      const random = seeded(number * 10_000 + round);
      const frames = mutate(random() < 0.2 ? [...events.slice(0, -1), ...other] : events, random);
      const reader = responsesUpstream.reader({ issuer: "openai" });
      const grammar = checkGrammar();
      const all = [...frames.flatMap((frame) => reader.push(frame)), ...reader.end()].flatMap((event) => {
        try {
          return grammar.push(event);
        } catch (cause) {
          throw new Error(`${name}, round ${round}:\n${frames.map(({ data }) => data).join("\n")}`, { cause });
        }
      });
      grammar.end();
      const ends = all.filter(({ type }) => type === "finish" || type === "error");
      assertEquals(ends.length, 1);
      if (ends[0]?.type === "finish") finished++;
      else failed++;
    }
  }
  // Both kinds of ends must be common, or the mutations test nothing.
  assert(finished > 1_000 && failed > 1_000, `${finished} finished, ${failed} failed`);
});

Deno.test("readReply() of a mangled response is a reply or an error of ours", () => {
  for (const [number, name] of Object.keys(STREAMS).entries()) {
    const response = streamEvents(name).at(-1)?.response;
    if (!isObject(response)) continue;
    for (let round = 0; round < ROUNDS; round++) {
      const random = seeded(number * 10_000 + round);
      const body = structuredClone(response);
      for (let times = 0; times < 3; times++) corrupt(body, random);
      try {
        const { blocks } = responsesUpstream.readReply(body, { issuer: "openai" });
        assert(Array.isArray(blocks));
      } catch (error) {
        assert(error instanceof Error && error.name === "GatewayError", String(error));
      }
    }
  }
});
