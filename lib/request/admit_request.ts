/** Admits a text request: reserves limits and budget, and prepares the request for each model that may answer. */
import { budgetClaims } from "../billing/budgets.ts";
import { GatewayError } from "../errors.ts";
import { isObject, type JsonObject, scanMembers, splicePath } from "../json/mod.ts";
import { isModelLimit } from "../limits/limit_requests.ts";
import type { LimitRequest } from "../limits/limiter.ts";
import type { ResponseContext } from "../protocols/codec.ts";
import { withSettings } from "../protocols/plain_contents.ts";
import { LONG_REQUEST_BYTES, yieldToEventLoop } from "../scheduler.ts";
import type { ClientRequest } from "../upstreams/upstream.ts";
import type { Candidate } from "./candidates.ts";
import { BETAS, type ScreenedBody } from "./screened_body.ts";
import { limitRequestsFor, type OutputCap, planSpending } from "./spending_plan.ts";
import type { RequestState } from "./state.ts";
import { longestMs } from "./targets.ts";

/** A model that may answer, and the request as this model would get it. */
export interface AdmittedModel extends Candidate {
  /** Output limit that the gateway set; absent if it set none. */
  cap: OutputCap | undefined;
  /** Limits to reserve when this alternative answers; those of the first model are already reserved. */
  limitRequests: readonly LimitRequest[];
  client: ClientRequest;
}

/** Admitted models, the preferred one first. */
export type AdmittedModels = readonly [AdmittedModel, ...AdmittedModel[]];

/**
 * Reserves the limits of the first model, and a budget hold for the most expensive of the models that may answer. If
 * the limits or budgets have no room for the first model, the next one becomes the first. Models that the budgets
 * cannot pay for are left out. A request without an output limit could cost as much as the model can write: if a budget
 * cannot pay for that, the gateway sets an output limit that the budget can pay for.
 * @returns the admitted models, the preferred one first
 * @throws {GatewayError} `limited`: the refusal of the first model
 */
export async function admitRequest(
  candidates: readonly Candidate[],
  screened: ScreenedBody,
  state: RequestState,
): Promise<AdmittedModels> {
  const admitted = await admitAny(candidates, (first, others) => admitFirst(first, others, { screened, state }));
  state.admit(admitted);
  return admitted;
}

/**
 * Admits a request with the first candidate for which limits and budgets have room. Candidates before it are left out.
 * @param admitWith admits `first` as the preferred model and `others` as its alternatives
 * @throws {GatewayError} the first refusal if there is no room for any candidate
 */
export async function admitAny<C, A>(
  candidates: readonly C[],
  admitWith: (first: C, others: readonly C[]) => Promise<A>,
): Promise<A> {
  let refusal: unknown;
  for (let [first, ...others] = candidates; first !== undefined; [first, ...others] = others) {
    try {
      return await admitWith(first, others);
    } catch (error) {
      if (!(error instanceof GatewayError) || error.kind !== "limited") throw error;
      refusal ??= error;
    }
  }
  throw refusal;
}

/** A request that was read but is not yet admitted. */
interface ReadRequest {
  screened: ScreenedBody;
  state: RequestState;
}

async function admitFirst(
  first: Candidate,
  others: readonly Candidate[],
  request: ReadRequest,
): Promise<AdmittedModels> {
  const { context, caller, meter } = request.state;
  const { gateway } = context;
  const budgets = budgetClaims(caller, meter.entry);
  const spending = { first, others, budgets, gateway };
  let plan = planSpending(spending);
  const canCostLess = budgets.length > 0 && (others.length > 0 || first.prompt.maxTokens === undefined);
  const limitRequests = limitRequestsFor(first, caller);
  // Yield before any reservation, so that no other request has to wait for reserved capacity.
  if (context.record.bytesIn > LONG_REQUEST_BYTES) await yieldToEventLoop();
  const admission = meter.admit({
    model: first.model,
    sheet: first.sheet,
    extraPrices: first.extraPrices,
    tier: first.prompt.extras?.tier,
    tierParameter: first.prompt.extras?.tierParameter,
    budgets,
    limitRequests,
    maxCost: plan.maxCost,
    // Reading the remaining budget costs time, and most budgets suffice, so it is read only after a refusal.
    costWithin: canCostLess ? (available) => (plan = planSpending({ ...spending, available })).maxCost : undefined,
    forMs: longestMs([first, ...others], gateway.config),
    isWhole: !first.prompt.stream,
  });
  if (admission !== undefined) await admission;
  const { cap, payable } = plan;
  return [
    admittedModel(first, { cap, limitRequests: [] }, request),
    ...payable.map((other) => {
      const modelLimits = limitRequestsFor(other, caller).filter(isModelLimit);
      return admittedModel(other, { cap, limitRequests: modelLimits }, request);
    }),
  ];
}

function admittedModel(
  { model, prompt: requested, dropped, sheet, extraPrices }: Candidate,
  { cap: planned, limitRequests }: Pick<AdmittedModel, "cap" | "limitRequests">,
  request: ReadRequest,
): AdmittedModel {
  const { screened, state: { codec, request: { headers } } } = request;
  const { body } = screened;
  // A model whose own maximum is not above the cap needs no cap.
  const cap = planned !== undefined && planned.tokens < model.top_provider.max_completion_tokens ? planned : undefined;
  const prompt = cap === undefined ? requested : withSettings(requested, { maxTokens: cap.tokens });
  const betaHeader = codec.extras.betas === undefined ? null : headers.get(BETAS);
  const betas = betaHeader === null ? undefined : screened.betasFor(model, betaHeader);
  for (const name of betas?.dropped ?? []) dropped.add(name);
  return {
    model,
    prompt,
    dropped,
    sheet,
    extraPrices,
    cap,
    limitRequests,
    client: {
      responseContext: new LazyResponseContext({ model, prompt, cap }, request),
      body: cap === undefined ? body : scanMembers(splicePath(body, cap.param.split("."), String(cap.tokens))),
      header: (name) => name === BETAS && betas !== undefined ? betas.value : headers.get(name),
    },
  };
}

/**
 * The parts of a text request that its answer repeats. The body is parsed only if an answer repeats it, which is rare.
 */
class LazyResponseContext implements ResponseContext {
  readonly requestId: string;
  readonly createdAt: number;
  readonly completedAt: () => number;
  readonly model: string;
  readonly reasons: boolean;
  readonly prompt: ResponseContext["prompt"];
  readonly keeper?: NonNullable<ResponseContext["keeper"]>;
  readonly #body: ScreenedBody["body"];
  readonly #cap: OutputCap | undefined;

  constructor(
    { model, prompt, cap }: Pick<AdmittedModel, "model" | "prompt" | "cap">,
    { screened, state }: ReadRequest,
  ) {
    const { gateway, keeper, requestId } = state.context;
    this.requestId = requestId;
    this.completedAt = () => Math.floor(gateway.now() / 1000);
    this.createdAt = Math.floor(gateway.now() / 1000);
    this.model = model.id;
    this.reasons = model.reasoning !== undefined;
    this.prompt = prompt;
    if (keeper !== undefined) this.keeper = keeper;
    this.#body = screened.body;
    this.#cap = cap;
  }

  get request(): JsonObject {
    const { value } = this.#body;
    return this.#cap === undefined ? value : withNumber(value, this.#cap.param.split("."), this.#cap.tokens);
  }
}

/** Returns a copy of an object with a number at a path of member names. */
function withNumber(object: JsonObject, [first = "", ...rest]: readonly string[], number: number): JsonObject {
  const inner = object[first];
  return { ...object, [first]: rest.length === 0 ? number : withNumber(isObject(inner) ? inner : {}, rest, number) };
}
