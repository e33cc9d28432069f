/** Runs the suite against a gateway. */
import { type Check, Mismatch, Skip, SUITE_PARTS, type SuitePart } from "./check.ts";
import { CHAT_CHECKS } from "./chat/checks.ts";
import { checksOf } from "./claims.ts";
import { type Subject, SuiteContext } from "./suite_context.ts";
import { GEMINI_CHECKS } from "./gemini/checks.ts";
import { methodPath } from "./gemini/forms.ts";
import { EMBEDDINGS } from "./embeddings.ts";
import { IMAGES } from "./images.ts";
import { MESSAGES_CHECKS } from "./messages/checks.ts";
import { MODELS } from "./models.ts";
import { RERANK } from "./rerank.ts";
import { RESPONSES_CHECKS } from "./responses/checks.ts";

/** All checks, in the order of the report. */
export const CHECKS: readonly Check[] = [
  ...checksOf("models", MODELS),
  ...checksOf("chat", CHAT_CHECKS),
  ...checksOf("responses", RESPONSES_CHECKS),
  ...checksOf("messages", MESSAGES_CHECKS),
  ...checksOf("gemini", GEMINI_CHECKS),
  ...checksOf("images", IMAGES),
  ...checksOf("embeddings", EMBEDDINGS),
  ...checksOf("rerank", RERANK),
];

/** The outcome of a check. */
export type Outcome =
  | { outcome: "pass"; note?: string }
  | { outcome: "fail"; expected: string; seen: string }
  | { outcome: "skip"; reason: string };

/** A check and its outcome. */
export type Result = Omit<Check, "run"> & Outcome;

/** Results of a run. */
export interface SuiteRun {
  results: Result[];
  requests: number;
}

/** A gateway cannot be tested at all. The message is one line. */
export class UnreachableGateway extends Error {
  override readonly name = "UnreachableGateway";
}

/** Options of a run. */
export interface RunOptions extends Subject {
  /** Parts to run, which the gateway must serve; absent: all that it serves. */
  only?: readonly SuitePart[];
  concurrency: number;
}

/** Possible paths of each part. The first one that exists is used. */
const PATHS: Readonly<Record<SuitePart, readonly [string, ...string[]]>> = {
  models: ["/v1/models"],
  chat: ["/v1/chat/completions"],
  responses: ["/v1/responses"],
  messages: ["/anthropic/v1/messages", "/v1/messages"],
  gemini: ["/v1beta/models"],
  images: ["/v1/images/generations"],
  embeddings: ["/v1/embeddings"],
  rerank: ["/v1/rerank", "/rerank"],
};

/** Runs the checks. @throws {UnreachableGateway} if the gateway does not answer or rejects the key */
export async function runSuite({ only, concurrency, ...subject }: RunOptions): Promise<SuiteRun> {
  const { context, missing } = await prepare(subject, only ?? []);
  const selected = CHECKS.filter(({ part }) => only === undefined || only.includes(part));
  const results = new Array<Result>(selected.length);
  const queue = selected.entries();
  const work = async (): Promise<void> => {
    for (const [index, check] of queue) {
      const { run: _, ...claim } = check;
      const missingOutcome = missing.get(check.part);
      results[index] = { ...claim, ...(missingOutcome ?? await runCheck(check, context)) };
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, concurrency) }, work));
  return { results: results.map((result) => withoutKey(result, subject.key)), requests: context.requests };
}

async function runCheck(check: Check, context: SuiteContext): Promise<Outcome> {
  try {
    const note = await check.run(context);
    return { outcome: "pass", ...(typeof note === "string" && { note }) };
  } catch (error) {
    if (error instanceof Skip) return { outcome: "skip", reason: error.message };
    if (error instanceof Mismatch) return { outcome: "fail", expected: error.expected, seen: error.seen };
    throw error;
  }
}

/**
 * Detects the parts that the gateway serves, with requests that generate nothing.
 * @param required parts that must exist
 * @returns the context of the checks, and the outcome of all checks of each missing part
 */
async function prepare(
  subject: Subject,
  required: readonly SuitePart[],
): Promise<{ context: SuiteContext; missing: Map<SuitePart, Outcome> }> {
  const prober = new SuiteContext(subject);
  const paths: Partial<Record<SuitePart, string>> = {};
  const missing = new Map<SuitePart, Outcome>();
  const statuses: number[] = [];
  for (const part of SUITE_PARTS) {
    for (const path of PATHS[part]) {
      if (paths[part] !== undefined) continue;
      const method = part === "models" ? "GET" : "POST";
      const probedPath = part === "gemini" ? methodPath(path, subject.model, "generateContent") : path;
      const answer = await prober.ask({ method, path: probedPath, ...(part !== "models" && { body: {} }) }).catch(
        (error) => {
          throw new UnreachableGateway(
            `Cannot check ${subject.origin}: ${error instanceof Mismatch ? error.seen : error}`,
          );
        },
      );
      statuses.push(answer.status);
      // An endpoint may answer 404 because the model does not exist; its message then mentions a model. The path is
      // removed from the message first, because many servers repeat an unknown path.
      const isKnown = ![404, 405].includes(answer.status) || /model/i.test(answer.text.replaceAll(probedPath, ""));
      if (isKnown) paths[part] = path;
    }
    if (paths[part] !== undefined) continue;
    const text = `nothing answers at ${PATHS[part].join(" or ")}`;
    missing.set(
      part,
      required.includes(part)
        ? { outcome: "fail", expected: "an endpoint", seen: text }
        : { outcome: "skip", reason: text },
    );
  }
  if (statuses.every((status) => status === 401 || status === 404)) {
    throw new UnreachableGateway(
      statuses.includes(401)
        ? `Cannot check ${subject.origin}: it refuses the key`
        : `Cannot check ${subject.origin}: none of the protocols is there`,
    );
  }
  const context = new SuiteContext(subject, paths);
  context.requests = prober.requests;
  return { context, missing };
}

/** Removes the key from a result, because the answers of a gateway may repeat it. */
function withoutKey(result: Result, key: string): Result {
  const clean = (text: string) => text.replaceAll(key, "[key]");
  switch (result.outcome) {
    case "pass":
      return result.note === undefined ? result : { ...result, note: clean(result.note) };
    case "fail":
      return { ...result, expected: clean(result.expected), seen: clean(result.seen) };
    case "skip":
      return { ...result, reason: clean(result.reason) };
  }
}
