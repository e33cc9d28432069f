/** `conform`: our suite of wire facts against any gateway. */
import { reportJson, reportText, runSuite, SUITE_PARTS, type SuitePart, UnreachableGateway } from "../conform/mod.ts";
import { rememberSecret } from "../secret.ts";
import { type Invocation, UsageError } from "./arguments.ts";
import { writeErr, writeOut } from "./output.ts";

/** Default number of concurrent checks. */
const CONCURRENCY = 4;
const MAX_CONCURRENCY = 32;

/** Time for one request, in milliseconds: models that think take a while. */
const TIMEOUT_MS = 120_000;

/** Runs the suite and prints the report. Returns 1 where anything failed. @throws {UsageError} */
export async function conform(
  { operand, values, switches }: Pick<Invocation, "operand" | "values" | "switches">,
  env: (name: string) => string | undefined,
): Promise<number> {
  const origin = parseOrigin(operand);
  const key = values.key ?? (env("SLUICE_CONFORM_KEY") || undefined);
  if (key === undefined) throw new UsageError("Expected --key or the environment variable SLUICE_CONFORM_KEY");
  // A value that no header can carry would be quoted in the error of `fetch`.
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
      ...{ imageModel, embeddingModel, rerankModel, only },
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

/** Parses the gateway's address, with or without the `/v1` that SDKs need. */
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
  if (text === undefined) return CONCURRENCY;
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > MAX_CONCURRENCY) {
    throw new UsageError(`Expected --concurrency from 1 to ${MAX_CONCURRENCY}, not "${text}"`);
  }
  return count;
}
