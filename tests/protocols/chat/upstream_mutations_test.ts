import { assert, assertEquals } from "@std/assert";
import { checkGrammar } from "../../../lib/canonical/grammar.ts";
import type { Json } from "../../../lib/json.ts";
import type { Frame } from "../../../lib/protocols/codec.ts";
import { chatUpstream } from "../../../lib/protocols/chat/upstream.ts";
import { framesOf, STREAMS } from "./upstream_streams.ts";

const RUNS = 20_000;

/** Random numbers below a bound, the same ones for the same seed. */
function randomNumbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Values that no upstream should send where something else is expected. */
const WRONG: readonly Json[] = [null, "", "x", -1, 0, 1e300, true, [], {}, [null], [[]], { a: 1 }, ["x"], "[DONE]"];

/** Replaces one member somewhere inside a value. */
function spoil(value: Json, random: (below: number) => number): Json {
  if (typeof value !== "object" || value === null || random(6) === 0) return WRONG[random(WRONG.length)] ?? null;
  const keys = Object.keys(value);
  const key = keys[random(keys.length)];
  if (key === undefined) return WRONG[random(WRONG.length)] ?? null;
  const copy: Record<string, Json> = JSON.parse(JSON.stringify(value));
  copy[key] = spoil(copy[key] ?? null, random);
  return Array.isArray(value) ? Object.values(copy) : copy;
}

function mutate(frames: Frame[], random: (below: number) => number): Frame[] {
  const mutated = [...frames];
  const at = random(Math.max(1, mutated.length));
  const frame = mutated[at];
  if (frame === undefined) return mutated;
  switch (random(6)) {
    case 0:
      mutated.splice(at, 1);
      break;
    case 1:
      mutated.splice(at, 0, frame);
      break;
    case 2: {
      const other = random(mutated.length);
      mutated[at] = mutated[other] ?? frame;
      mutated[other] = frame;
      break;
    }
    case 3:
      mutated[at] = { data: frame.data.slice(0, random(frame.data.length + 1)) };
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

Deno.test("reader() keeps the order of events whatever is done to a stream", () => {
  const streams = Object.values(STREAMS).map(framesOf);
  let finished = 0;
  for (let seed = 0; seed < RUNS; seed++) {
    const random = randomNumbers(seed);
    let frames = streams[random(streams.length)] ?? [];
    // Two streams spliced into each other are one more kind of damage.
    if (random(4) === 0) frames = [...frames.slice(0, random(frames.length)), ...streams[random(streams.length)] ?? []];
    for (let times = random(4); times >= 0; times--) frames = mutate(frames, random);
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

Deno.test("readReply() fails as an upstream's failure whatever is done to an answer", () => {
  const wholes = Object.values(STREAMS).flatMap(({ whole }) => whole === undefined ? [] : [whole]);
  let read = 0;
  for (let seed = 0; seed < RUNS; seed++) {
    const random = randomNumbers(seed);
    const body = spoil(wholes[random(wholes.length)] ?? null, random);
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
