import { assert, assertEquals } from "@std/assert";
import { checkGrammar } from "../canonical/event_grammar.ts";
import { isObject, type Json, type JsonObject } from "../../../lib/json/mod.ts";
import type { Frame } from "../../../lib/protocols/codec.ts";
import { responsesUpstream } from "../../../lib/protocols/responses/upstream.ts";
import { type Random, seeded } from "../../support/random.ts";
import { streamEvents, STREAMS } from "./upstream_streams.ts";

const ROUNDS = 150;

const JUNK: Json[] = [null, 0, -1, 1e9, "", "x", "message", "completed", true, [], {}, [null], { type: "reasoning" }];

/** Replaces a random nested member by junk, or removes it. */
function corrupt(value: JsonObject, random: Random): void {
  const names = Object.keys(value);
  if (names.length === 0) return;
  const name = random.pick(names);
  const member = value[name];
  if (isObject(member) && random.chance(0.7)) return corrupt(member, random);
  const [first] = Array.isArray(member) ? member : [];
  if (isObject(first) && random.chance(0.7)) return corrupt(first, random);
  if (random.chance(0.3)) delete value[name];
  else value[name] = random.pick(JUNK);
}

function mutate(events: JsonObject[], random: Random): Frame[] {
  const copy = structuredClone(events);
  const pick = () => random.below(copy.length);
  for (let times = random.below(4); times >= 0 && copy.length > 1; times--) {
    const at = pick();
    const [event] = copy.slice(at, at + 1);
    assert(event !== undefined);
    const kind = random.next();
    if (kind < 0.2) copy.splice(at, 1);
    else if (kind < 0.4) copy.splice(pick(), 0, structuredClone(event));
    else if (kind < 0.6) copy.splice(pick(), 0, ...copy.splice(at, 1));
    else if (kind < 0.7) copy.splice(at);
    else corrupt(event, random);
  }
  const frames = copy.map((event): Frame => ({ data: JSON.stringify(event) }));
  const broken = frames[random.below(frames.length)];
  if (random.chance(0.1) && broken !== undefined) broken.data = broken.data.slice(0, random.below(40));
  return frames;
}

Deno.test("reader() obeys the grammar for any mutated stream", () => {
  let finished = 0;
  let failed = 0;
  for (const [number, name] of Object.keys(STREAMS).entries()) {
    const events = streamEvents(name);
    const other = streamEvents(Object.keys(STREAMS)[(number * 7 + 3) % Object.keys(STREAMS).length] ?? name);
    for (let round = 0; round < ROUNDS; round++) {
      const random = seeded(number * 10_000 + round);
      const frames = mutate(random.chance(0.2) ? [...events.slice(0, -1), ...other] : events, random);
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

Deno.test("readReply() of a mutated response is a reply or a GatewayError", () => {
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
