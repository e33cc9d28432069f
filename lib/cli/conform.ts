/** `conform`: tests how well any gateway conforms to the protocols. */
import { reportJson, reportText, runSuite, SUITE_PARTS, type SuitePart, UnreachableGateway } from "../conform/mod.ts";
import { rememberSecret } from "../secret.ts";
import { type Invocation, UsageError } from "./arguments.ts";
import { writeErr, writeOut } from "./output.ts";

const DEFAULT_CONCURRENCY = 4;
/** Largest number of concurrent checks. */
const MAX_CONCURRENCY = 32;

/** Longest duration of one request, in milliseconds. Models that reason take a while. */
const TIMEOUT_MS = 120_000;

/** Runs the suite and prints the report. Returns 1 if a check failed. @throws {UsageError} if a flag is wrong */
export async function conform(
  { operand, values, switches }: Pick<Invocation, "operand" | "values" | "switches">,
  env: (name: string) => string | undefined,
): Promise<number> {
  const origin = parseOrigin(operand);
  const key = values.key ?? (env("SLUICE_CONFORM_KEY") || undefined);
  if (key === undefined) throw new UsageError("Expected --key or the environment variable SLUICE_CONFORM_KEY");
  // For a value that no header can carry, the error of `fetch` would quote the key.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new UsageError("Expected a key of visible ASCII characters");
  rememberSecret(key);
  if (values.model === undefined) throw new UsageError("Expected --model");
  const only = values.only === undefined ? undefined : values.only.split(",").map(readPart);
  const { "image-model": imageModel, "embedding-model": embeddingModel, "rerank-model": rerankModel } = values;
  try {
    const run = await runSuite({
      origin,
      key,
      model: values.model,
      imageModel,
      embeddingModel,
      rerankModel,
      only,
      concurrency: readConcurrency(values.concurrency),
      timeoutMs: TIMEOUT_MS,
    });
    const about = { origin, model: values.model };
    writeOut(switches.has("json") ? `${reportJson(run, about)}\n` : reportText(run, about));
    return run.results.every(({ outcome }) => outcome !== "fail") ? 0 : 1;
  } catch (error) {
    if (!(error instanceof UnreachableGateway)) throw error;
    writeErr(`${error.message}\n`);
    return 1;
  }
}

/** Parses the address of a gateway, and drops the `/v1` that SDKs need. @throws {UsageError} for any other text */
export function parseOrigin(text: string): string {
  const url = URL.parse(text);
  const isPlain = url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.search === "";
  if (!isPlain) {
    throw new UsageError(`Expected an address such as "https://gateway.example.com", without user and query`);
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, "").replace(/\/v1$/, "");
}

function readPart(text: string): SuitePart {
  const part = SUITE_PARTS.find((name) => name === text);
  if (part === undefined) throw new UsageError(`Unknown part "${text}" of --only; known: ${SUITE_PARTS.join(", ")}`);
  return part;
}

function readConcurrency(text: string | undefined): number {
  if (text === undefined) return DEFAULT_CONCURRENCY;
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > MAX_CONCURRENCY) {
    throw new UsageError(`Expected --concurrency from 1 to ${MAX_CONCURRENCY}, not "${text}"`);
  }
  return count;
}
