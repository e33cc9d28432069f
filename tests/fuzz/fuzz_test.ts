import { assert, assertEquals } from "@std/assert";
import type { Protocol } from "../../lib/protocols/canonical/types.ts";
import { soundAnswer, SPOKEN } from "../e2e/fault/matrix/sound_answer.ts";
import { endOf } from "../e2e/fault/matrix/seen.ts";
import { startWire } from "../e2e/fault/matrix/wire.ts";
import { send } from "../e2e/fault/matrix/written.ts";
import { latin1 } from "./bytes.ts";
import { complaint } from "./judge.ts";
import regressions from "./regressions.json" with { type: "json" };
import type { ErrorShape } from "./requests.ts";
import { assertQuiet, fuzz, KEY, startFuzzed } from "./run.ts";
import { fuzzAnswers } from "./run_answers.ts";
import { exchange } from "../server/serve.ts";
import { oneModel, startGateway } from "../support/gateway.ts";
import { prompt, PROTOCOLS } from "../upstream/replies.ts";
import { rounds } from "../support/skip.ts";

/** Another one: `SLUICE_FUZZ_SEED=7 SLUICE_FUZZ_REQUESTS=100000 deno test -A tests/fuzz/fuzz_test.ts`. */
const SEED = Number(Deno.env.get("SLUICE_FUZZ_SEED") ?? 20_261_121);
const REQUESTS = Number(Deno.env.get("SLUICE_FUZZ_REQUESTS") ?? rounds(2_000));
const ANSWERS = Number(Deno.env.get("SLUICE_FUZZ_ANSWERS") ?? rounds(1_500));

/** Longest time for an answer: images are painted meanwhile, maybe on a busy machine. */
const PATIENCE_MS = 60_000;

Deno.test(`${REQUESTS} malformed requests get errors in the shape of their protocol (seed ${SEED})`, async () => {
  await using fuzzed = await startFuzzed();
  const { statuses } = await fuzz(fuzzed, { seed: SEED, requests: REQUESTS, patienceMs: PATIENCE_MS });
  // If all requests got the same error, the test would prove nothing.
  for (const status of [200, 400]) {
    assert((statuses.get(status) ?? 0) > REQUESTS / 10, `${JSON.stringify([...statuses])}`);
  }
});

Deno.test(`${ANSWERS} malformed upstream answers become errors of the client's protocol, and leak nothing (seed ${SEED})`, async () => {
  const seen = await fuzzAnswers({ seed: SEED, answers: ANSWERS, transport: "http1" });
  for (const end of ["answer", "error within", 502] as const) {
    assert((seen.get(end) ?? 0) > ANSWERS / 50, `${JSON.stringify([...seen])}`);
  }
});

Deno.test("requests that once caused a wrong answer are answered correctly", async () => {
  await using fuzzed = await startFuzzed();
  const { gateway, wire } = fuzzed;
  for (const { about, request, soundHead, errors } of regressions.requests) {
    const bytes = latin1(request.replace(KEY, gateway.keys.good));
    const response = await exchange(gateway.port, [bytes]);
    assertEquals(complaint(response, { bytes, soundHead, errors: errors as ErrorShape }), undefined, about);
  }
  assertEquals(gateway.logs.filter(({ level }) => level === "error"), []);
  await assertQuiet(gateway, wire);
});

Deno.test("upstream answers that were once passed on wrongly are passed on correctly", async () => {
  for (const { about, frame, seen, ...names } of regressions.answers) {
    const client = oneOf(PROTOCOLS, names.client);
    const spoken = oneOf(SPOKEN, names.spoken);
    const { opening, pieces, ...others } = soundAnswer(spoken, true);
    const odd = { ...others, opening, pieces: pieces.flatMap((piece, at) => at === 2 ? [frame, piece] : [piece]) };
    await using wire = startWire({ get: () => ({ play: (line) => send(line, odd), resets: false }) });
    await using gateway = startGateway(oneModel(spoken, wire.url), { described: false });
    const response = await gateway.ask(client, prompt(client, { stream: true }));
    const got = { status: response.status, headers: response.headers, text: await response.text() };
    const end = endOf(got, { protocol: client, stream: true });
    // The arrival of the bytes decides if text was read before the fault.
    assertEquals(end.seen === 502 ? "error within" : String(end.seen), seen, `${about}\n${got.text}`);
  }
});

function oneOf<T extends Protocol>(names: readonly T[], name: string): T {
  const found = names.find((other) => other === name);
  if (found === undefined) throw new RangeError(`No such protocol: ${name}`);
  return found;
}
