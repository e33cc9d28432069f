/** Tests of one target: a minimal request of an operator, through the path of all requests. */
import type { Caller } from "../access/permissions.ts";
import { logChange, originOf } from "../admin/changes.ts";
import { explainRequest } from "../billing/reports/explain.ts";
import type { EndedRequest } from "../billing/reports/request_schemas.ts";
import { TEST_KEY_ID, TEST_KEY_NAME } from "../billing/reports/usage.ts";
import { kindOf } from "../catalog/catalog.ts";
import type { Model, Target } from "../catalog/model.ts";
import { groupSchema } from "../config.ts";
import { GatewayError } from "../errors.ts";
import { type Gateway, isolateTarget } from "../gateway.ts";
import type { JsonObject } from "../json/mod.ts";
import type { RouteContext } from "../server/router.ts";
import { Cards, State, Usd } from "./format.tsx";
import { CONSOLE, type Page, runForm } from "./html.tsx";
import { sendAs } from "./playground_send.ts";

/** Longest test, in milliseconds. */
const TEST_MS = 60_000;

/** Most tokens of an answer: the least that every vendor accepts. */
const MAX_TOKENS = 16;

/** Minimal requests by the kind of model. Images have none: each costs as much as any other. */
const REQUESTS = {
  text: {
    endpoint: "chat",
    body: { max_completion_tokens: MAX_TOKENS, messages: [{ role: "user", content: "Answer with OK." }] },
  },
  embedding: { endpoint: "embeddings", body: { input: "OK" } },
  rerank: { endpoint: "rerank", body: { query: "OK", documents: ["OK", "no"] } },
} as const satisfies Record<string, { endpoint: string; body: JsonObject }>;

/** True for a model whose targets can be tested. */
export function isTestable(model: Model): boolean {
  return Object.hasOwn(REQUESTS, kindOf(model));
}

/** `POST /admin/console/models`: sends a minimal request to one target of a model, and shows what came of it. */
export function testFromForm(request: Request, context: RouteContext): Promise<Response> {
  return runForm(request, context, async (fields) => {
    const { gateway } = context;
    const model = gateway.catalog.models.find(({ id }) => id === fields.get("model"));
    const target = model?.targets[Number(fields.get("target") || NaN)];
    if (model === undefined || target === undefined) {
      throw new GatewayError("not_found", "Cannot test this target: it is no longer in the catalog");
    }
    const result = await testTarget(gateway, { model, target, signal: request.signal });
    const { status, ms, requestId, message } = result;
    await logChange(gateway, {
      ...originOf(context),
      ...(requestId !== "" && { requestId: requestId.slice("req_".length) }),
      action: "test_target",
      subject: `${model.id} at ${target.upstream}: ${target.model}`,
      after: { status, ms, request_id: requestId, ...(message !== undefined && { message }) },
    });
    return resultPage(result, { model, target });
  });
}

/** The outcome of a test. */
interface TestResult {
  /** HTTP status of the answer to a client. */
  status: number;
  ms: number;
  requestId: string;
  /** The entry of the ledger; absent where it is not there yet. */
  entry?: EndedRequest;
  /** Status and message of the vendor, or the gateway's message where it did not answer. */
  vendorStatus?: number;
  message?: string;
}

async function testTarget(
  gateway: Gateway,
  { model, target, signal }: { model: Model; target: Target; signal: AbortSignal },
): Promise<TestResult> {
  const kind = kindOf(model);
  if (!isTestable(model)) {
    throw new GatewayError("invalid", "Targets of image models have no test: each image is billed");
  }
  const { endpoint, body } = REQUESTS[kind as keyof typeof REQUESTS];
  const { isolated, close } = isolateTarget(gateway, model, target);
  try {
    const begunAt = gateway.monotonic();
    const response = await sendAs(TESTER, {
      gateway: isolated,
      endpoint,
      body: { model: model.id, ...body },
      signal: AbortSignal.any([signal, AbortSignal.timeout(TEST_MS)]),
      tag: "target-test",
    });
    const text = await response.text();
    const ms = Math.round(gateway.monotonic() - begunAt);
    const requestId = response.headers.get("x-request-id") ?? "";
    await gateway.ledger.flush();
    const found = await explainRequest(gateway.store.ledger, requestId);
    const entry = found?.state === "ended" ? found : undefined;
    const failed = entry?.attempt_list.findLast(({ outcome }) => outcome !== "success");
    const message = failed?.message ?? (response.ok ? undefined : messageIn(text));
    return {
      status: response.status,
      ms,
      requestId,
      ...(entry !== undefined && { entry }),
      ...(failed?.status !== undefined && { vendorStatus: failed.status }),
      ...(message !== undefined && { message }),
    };
  } finally {
    close();
  }
}

/** The caller of tests: of no key and no group of the configuration, so that no limit or budget counts them. */
const TESTER: Caller = {
  keyId: TEST_KEY_ID,
  keyName: TEST_KEY_NAME,
  groupName: TEST_KEY_NAME,
  group: groupSchema.parse({}),
  rules: {},
};

/** The message of an error in the form of OpenAI's. */
function messageIn(text: string): string {
  try {
    return String(JSON.parse(text).error.message);
  } catch {
    return "The answer is not an error that can be read";
  }
}

function resultPage(
  { status, ms, requestId, entry, vendorStatus, message }: TestResult,
  { model, target }: { model: Model; target: Target },
): Page {
  const isGood = status >= 200 && status < 300;
  return {
    title: "Target test",
    body: (
      <>
        <p>
          <State
            state={isGood ? "ok" : "error"}
            text={isGood ? "The target answered." : "The target did not answer."}
          />
        </p>
        {message !== undefined && <p class="notice bad">{message}</p>}
        <Cards
          cards={[
            ["Model", model.id],
            ["Target", `${target.upstream}: ${target.model}`],
            ["Status", status],
            ["Status of the vendor", vendorStatus ?? (isGood ? status : "–")],
            ["Time", `${ms} ms`],
            ["Cost", entry === undefined ? "–" : <Usd usd={entry.charged_usd} />],
          ]}
        />
        <p>
          {requestId !== "" && <a href={`${CONSOLE}/requests/${requestId}`}>The request in the ledger</a>}{" "}
          <a href={`${CONSOLE}/models`}>Models</a>
        </p>
      </>
    ),
  };
}
