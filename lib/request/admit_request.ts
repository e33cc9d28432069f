/** Admits a text request: limits and budgets are reserved, and each model that may answer gets the request as it sees it. */
import { requireCaller } from "../access/permissions.ts";
import { budgetClaims } from "../billing/budgets.ts";
import { GatewayError } from "../errors.ts";
import { isObject, type JsonObject, scanMembers, splicePath } from "../json/mod.ts";
import type { LimitRequest } from "../limits/limiter.ts";
import type { Echo } from "../protocols/codec.ts";
import { withSettings } from "../protocols/plain_contents.ts";
import { LONG_REQUEST_BYTES, yieldToEventLoop } from "../scheduler.ts";
import type { ClientRequest } from "../upstreams/upstream.ts";
import type { Candidate } from "./candidates.ts";
import { BETAS, type Screened } from "./extras.ts";
import { limitRequestsFor, type OutputCap, planSpending } from "./spending_plan.ts";
import type { RequestState } from "./state.ts";
import { longestMs } from "./targets.ts";

/** A model that may answer, and the request as it would get it. */
export interface AdmittedModel extends Candidate {
  /** The output limit that the gateway set; absent: none. */
  cap: OutputCap | undefined;
  /** Limits to reserve when this alternative answers; those of the first model are already reserved. */
  limitRequests: readonly LimitRequest[];
  client: ClientRequest;
}

/** Admitted models, the preferred one first. */
export type AdmittedModels = readonly [AdmittedModel, ...AdmittedModel[]];

/**
 * Reserves what a request needs of limits and budgets: the limits of the first model, and an amount for the dearest of
 * the models that may answer. If they have no room for the first model, the next one becomes the first. Models that the
 * budgets cannot pay for are left out. A request without an output limit could cost as much as the model can write: if a
 * budget cannot pay for that, the request gets a limit that it can pay.
 * @returns the admitted models, the preferred one first
 * @throws {GatewayError} `limited`: the refusal of the first model
 */
export async function admitRequest(
  candidates: readonly Candidate[],
  screened: Screened,
  state: RequestState,
): Promise<AdmittedModels> {
  const admitted = await admitAny(candidates, (first, others) => admitFirst(first, others, { screened, state }));
  state.admit(admitted);
  return admitted;
}

/**
 * Admits a request with the first candidate whose limits and budgets have room for it, and with those after that one.
 * @throws {GatewayError} the first refusal if none has room
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

/** A request that is read but not yet admitted. */
interface ReadRequest {
  screened: Screened;
  state: RequestState;
}

async function admitFirst(
  first: Candidate,
  others: readonly Candidate[],
  request: ReadRequest,
): Promise<AdmittedModels> {
  const { context, meter } = request.state;
  const { gateway } = context;
  const caller = requireCaller(context.caller);
  const budgets = budgetClaims(caller, { user: meter.user, now: gateway.now() });
  const spending = { first, others, budgets, gateway };
  let plan = planSpending(spending);
  const canBeLess = budgets.length > 0 && (others.length > 0 || first.prompt.maxTokens === undefined);
  const limitRequests = limitRequestsFor(first, caller);
  // Before any reservation, so that no other request waits for it.
  if (context.record.bytesIn > LONG_REQUEST_BYTES) await yieldToEventLoop();
  const reserving = meter.admit({
    model: first.model,
    sheet: first.sheet,
    extraPrices: first.extraPrices,
    tier: first.prompt.extras?.tier,
    budgets,
    limitRequests,
    maxCost: plan.maxCost,
    // Reading what is left costs time, and most budgets suffice: only a refusal needs it.
    costWithin: canBeLess ? (left) => (plan = planSpending({ ...spending, available: left })).maxCost : undefined,
    forMs: longestMs([first, ...others], gateway.config),
    isWhole: !first.prompt.stream,
  });
  if (reserving !== undefined) await reserving;
  const { cap, payable } = plan;
  return [
    admittedModel(first, { cap, limitRequests: [] }, request),
    ...payable.map((other) => {
      const ofModel = limitRequestsFor(other, caller).filter(({ name }) => name.startsWith("model:"));
      return admittedModel(other, { cap, limitRequests: ofModel }, request);
    }),
  ];
}

function admittedModel(
  { model, prompt: original, dropped, sheet, extraPrices }: Candidate,
  { cap: outputCap, limitRequests }: Pick<AdmittedModel, "cap" | "limitRequests">,
  request: ReadRequest,
): AdmittedModel {
  const { screened, state: { codec, request: { headers } } } = request;
  const { body } = screened;
  // A model that cannot write as much needs no cap.
  const cap = outputCap !== undefined && outputCap.tokens < model.top_provider.max_completion_tokens
    ? outputCap
    : undefined;
  const prompt = cap === undefined ? original : withSettings(original, { maxTokens: cap.tokens });
  const header = codec.extras.betas === undefined ? null : headers.get(BETAS);
  const betas = header === null ? undefined : screened.betasFor(model, header);
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
      echo: new RequestEcho({ model, prompt, cap }, request),
      body: cap === undefined ? body : scanMembers(splicePath(body, cap.param.split("."), String(cap.tokens))),
      header: (name) => name === BETAS && betas !== undefined ? betas.value : headers.get(name),
    },
  };
}

/** The echo of a text request. Its body is parsed when an answer repeats it: few do. */
class RequestEcho implements Echo {
  readonly requestId: string;
  readonly createdAt: number;
  readonly completedAt: () => number;
  readonly model: string;
  readonly prompt: Echo["prompt"];
  readonly keeper?: NonNullable<Echo["keeper"]>;
  readonly #body: Screened["body"];
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

/** A copy of an object with a number at a path of names. */
function withNumber(object: JsonObject, [first = "", ...rest]: readonly string[], number: number): JsonObject {
  const inner = object[first];
  return { ...object, [first]: rest.length === 0 ? number : withNumber(isObject(inner) ? inner : {}, rest, number) };
}
