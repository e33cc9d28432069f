import { assert, assertEquals } from "@std/assert";
import { checkGrammar } from "../canonical/event_grammar.ts";
import type { Json } from "../../../lib/json/mod.ts";
import type { Frame } from "../../../lib/protocols/codec.ts";
import { chatUpstream } from "../../../lib/protocols/chat/upstream.ts";
import { type Random, seeded } from "../../support/random.ts";
import { framesOf, STREAMS } from "./upstream_streams.ts";

const RUNS = 20_000;

/** Values that no upstream should send where something else is expected. */
const WRONG: readonly Json[] = [null, "", "x", -1, 0, 1e300, true, [], {}, [null], [[]], { a: 1 }, ["x"], "[DONE]"];

/** Replaces one member somewhere inside a value. */
function spoil(value: Json, random: Random): Json {
  if (typeof value !== "object" || value === null || random.below(6) === 0) {
    return random.pick(WRONG);
  }
  const keys = Object.keys(value);
  const key = keys[random.below(keys.length)];
  if (key === undefined) return random.pick(WRONG);
  const copy: Record<string, Json> = JSON.parse(JSON.stringify(value));
  copy[key] = spoil(copy[key] ?? null, random);
  return Array.isArray(value) ? Object.values(copy) : copy;
}

function mutate(frames: Frame[], random: Random): Frame[] {
  const mutated = [...frames];
  const at = random.below(Math.max(1, mutated.length));
  const frame = mutated[at];
  if (frame === undefined) return mutated;
  switch (random.below(6)) {
    case 0:
      mutated.splice(at, 1);
      break;
    case 1:
      mutated.splice(at, 0, frame);
      break;
    case 2: {
      const other = random.below(mutated.length);
      mutated[at] = mutated[other] ?? frame;
      mutated[other] = frame;
      break;
    }
    case 3:
      mutated[at] = { data: frame.data.slice(0, random.below(frame.data.length + 1)) };
      break;
    case 4:
      mutated.length = at;
      break;
    default:
      try {
        mutated[at] = { data: JSON.stringify(spoil(JSON.parse(frame.data), random)) };
      } catch {
        mutated[at] = { data: frame.data + frame.data };
      }
  }
  return mutated;
}

Deno.test("reader() keeps events in legal order for any mutated stream", () => {
  const streams = Object.values(STREAMS).map(framesOf);
  let finished = 0;
  for (let seed = 0; seed < RUNS; seed++) {
    const random = seeded(seed);
    let frames = random.pick(streams);
    // Two streams spliced into each other are one more kind of damage.
    if (random.below(4) === 0) {
      frames = [...frames.slice(0, random.below(frames.length)), ...random.pick(streams)];
    }
    for (let times = random.below(4); times >= 0; times--) frames = mutate(frames, random);
    const machine = chatUpstream.reader({ issuer: "acme" });
    const grammar = checkGrammar();
    const note = `seed ${seed}: ${JSON.stringify(frames.map(({ data }) => data)).slice(0, 2_000)}`;
    let events;
    try {
      events = [...frames.flatMap((frame) => machine.push(frame)), ...machine.end()];
      events.forEach((event) => grammar.push(event));
      grammar.end();
    } catch (error) {
      throw new Error(note, { cause: error });
    }
    const ends = events.filter(({ type }) => type === "finish" || type === "error");
    assertEquals(ends.length, 1, note);
    const [end] = ends;
    if (end?.type === "finish") finished++;
    // A mistake of ours would be an internal error.
    if (end?.type === "error") assert(end.error.kind !== "internal", `${note} ${end.error.cause}`);
  }
  assert(finished > RUNS / 10 && finished < RUNS);
});

Deno.test("readReply() fails as an upstream error for any mutated answer", () => {
  const wholes = Object.values(STREAMS).flatMap(({ whole }) => whole === undefined ? [] : [whole]);
  let read = 0;
  for (let seed = 0; seed < RUNS; seed++) {
    const random = seeded(seed);
    const body = spoil(random.pick(wholes), random);
    if (typeof body !== "object" || body === null || Array.isArray(body)) continue;
    try {
      chatUpstream.readReply(body, { issuer: "acme" });
      read++;
    } catch (error) {
      assert(error instanceof Error && error.name === "GatewayError", `seed ${seed}: ${error}`);
    }
  }
  assert(read > 0);
});
