/** The two vendors of the demo. Both answer in their own protocols; one of them has a model with problems. */
import type { Protocol } from "../../lib/protocols/canonical/types.ts";
import { delay } from "../../lib/abort.ts";
import { frames, whole } from "../upstream/frames.ts";
import {
  type FakeUpstream,
  json,
  type ScriptedAnswer,
  startUpstream,
  type Step,
  type UpstreamRequest,
} from "../upstream/mod.ts";
import type { VendorAddresses } from "./configuration.ts";

/** The vendors at work. */
export interface Vendors extends AsyncDisposable {
  urls: VendorAddresses;
  /** Forgets the requests so far. */
  forget(): void;
}

/** The model that one vendor cannot serve at present. */
const BROKEN = "kestrel-70b";

const ANSWER =
  "This answer comes from a vendor that does not exist. It reads no prompt, so it says the same every time: " +
  "the gateway in front of it counts its tokens, prices them and enters them in the ledger, as it would for any other.";

/** Starts both. @param pauseMs milliseconds between two pieces of a streamed answer */
export function startVendors({ pauseMs = 30 } = {}): Vendors {
  const borealis = startUpstream((request) =>
    probeAnswer(request) ?? (request.json.model === BROKEN ? broken() : answer(request, pauseMs))
  );
  const meridian = startUpstream((request) => probeAnswer(request) ?? answer(request, pauseMs));
  const both: FakeUpstream[] = [borealis, meridian];
  return {
    urls: { borealis: borealis.url, meridian: meridian.url },
    forget: () => both.forEach(({ requests }) => requests.splice(0)),
    async [Symbol.asyncDispose]() {
      await Promise.all(both.map((vendor) => vendor[Symbol.asyncDispose]()));
    },
  };
}

/** The answer to a probe of the gateway: a list of models, or the refusal of a request without one. */
function probeAnswer(request: UpstreamRequest): ScriptedAnswer | undefined {
  if (request.method === "GET") return json({ object: "list", data: [] });
  if (request.bytes.length > 0 && request.json.model !== undefined) return undefined;
  const message = "The request names no model";
  return json({ error: { message, type: "invalid_request_error", param: "model", code: null } }, { status: 400 });
}

function broken(): ScriptedAnswer {
  const message = "The server had an error while processing your request";
  return json({ error: { message, type: "server_error", param: null, code: null } }, { status: 500 });
}

function answer(request: UpstreamRequest, pauseMs: number): ScriptedAnswer {
  if (request.path.endsWith("/embeddings")) return embeddings(request);
  const protocol = protocolOf(request.path);
  // About four characters make a token.
  const usage = { input: Math.max(5, Math.ceil(request.body.length / 4)), output: Math.ceil(ANSWER.length / 4) };
  if (!request.stream) return { body: withUsage(whole(protocol, ANSWER, "reported"), usage) };
  const { opening, pieces, ending } = frames(protocol, ANSWER.match(/\S+\s*/g) ?? [], "reported");
  const end = new AbortController();
  void request.gone.then(() => end.abort());
  return { steps: streamed([...opening, ...pieces, ...ending].map((frame) => withUsage(frame, usage))) };

  function* streamed(all: readonly string[]): Iterable<Step> {
    for (const frame of all) {
      yield frame;
      yield delay(pauseMs, end.signal).catch(() => {});
    }
  }
}

function protocolOf(path: string): Protocol {
  if (path.endsWith("/messages")) return "messages";
  return path.endsWith("/responses") ? "responses" : "chat";
}

/** The same text with other numbers of tokens. */
function withUsage(text: string, { input, output }: { input: number; output: number }): string {
  return text.replaceAll(/"(?:prompt|input)_tokens":\d+/g, (found) => found.replace(/\d+$/, String(input)))
    .replaceAll(/"(?:completion|output)_tokens":\d+/g, (found) => found.replace(/\d+$/, String(output)))
    .replaceAll(/"total_tokens":\d+/g, `"total_tokens":${input + output}`);
}

function embeddings({ json: { input, encoding_format, model }, body }: UpstreamRequest): ScriptedAnswer {
  const vector = Array.from({ length: 8 }, (_, index) => Math.fround((index + 1) / 36));
  const bytes = new Uint8Array(new Float32Array(vector).buffer);
  const embedding = encoding_format === "base64" ? bytes.toBase64() : vector;
  const data = [input].flat().map((_, index) => ({ object: "embedding", index, embedding }));
  const tokens = Math.ceil(body.length / 4);
  return json({ object: "list", data, model, usage: { prompt_tokens: tokens, total_tokens: tokens } });
}
