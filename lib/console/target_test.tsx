/** Tests a single target with a minimal request, which takes the same path as requests of clients. */
import type { Caller } from "../access/permissions.ts";
import { logChange, originOf } from "../admin/changes.ts";
import { explainRequest } from "../billing/reports/explain.ts";
import type { EndedRequest } from "../billing/reports/request_schemas.ts";
import { TEST_KEY_ID, TEST_KEY_NAME } from "../billing/reports/usage_filter.ts";
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

/** Longest duration of a test, in milliseconds. */
const TEST_TIMEOUT_MS = 60_000;

/** Limit of output tokens: the lowest that all vendors accept. */
const MAX_OUTPUT_TOKENS = 16;

/** Minimal requests by kind of model. Image models have none, because every image is expensive. */
const REQUESTS = {
  text: {
    endpoint: "chat",
    body: { max_completion_tokens: MAX_OUTPUT_TOKENS, messages: [{ role: "user", content: "Answer with OK." }] },
  },
  embedding: { endpoint: "embeddings", body: { input: "OK" } },
  rerank: { endpoint: "rerank", body: { query: "OK", documents: ["OK", "no"] } },
} as const satisfies Record<string, { endpoint: string; body: JsonObject }>;

/** Returns whether the targets of a model can be tested. */
export function isTestable(model: Model): boolean {
  return Object.hasOwn(REQUESTS, kindOf(model));
}

/** `POST /admin/console/models`: sends a minimal request to one target of a model, and shows the outcome. */
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

interface TestResult {
  /** HTTP status that a client would get. */
  status: number;
  ms: number;
  requestId: string;
  /** The ledger entry; absent if it is not there yet. */
  entry?: EndedRequest;
  /** HTTP status of the vendor's error; absent: there was none. */
  vendorStatus?: number;
  /** Message of the vendor's error, or of the gateway's if the vendor did not answer; absent: the test succeeded. */
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
    const startedAt = gateway.monotonic();
    const response = await sendAs(TESTER, {
      gateway: isolated,
      endpoint,
      body: { model: model.id, ...body },
      signal: AbortSignal.any([signal, AbortSignal.timeout(TEST_TIMEOUT_MS)]),
      tag: "target-test",
    });
    const text = await response.text();
    const ms = Math.round(gateway.monotonic() - startedAt);
    const requestId = response.headers.get("x-request-id") ?? "";
    await gateway.ledger.flush();
    const explanation = await explainRequest(gateway.store.ledger, requestId);
    const entry = explanation?.state === "ended" ? explanation : undefined;
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

/** The caller of tests. It has no real key or group, so tests count toward no limit or budget. */
const TESTER: Caller = {
  keyId: TEST_KEY_ID,
  keyName: TEST_KEY_NAME,
  groupName: TEST_KEY_NAME,
  group: groupSchema.parse({}),
  rules: {},
};

/** Returns the message in the body of an error in OpenAI's form. */
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
