/** Members of a request that its answer repeats. */
import type { Prompt } from "../protocols/canonical/types.ts";
import type { JsonObject } from "../json/mod.ts";
import type { AnswerKeeper, Echo } from "../protocols/codec.ts";
import type { JsonBody } from "../server/router.ts";
import type { OutputCap } from "./spending_plan.ts";

/** The parts of an echo. */
export type EchoParts =
  & Required<Pick<Echo, "requestId" | "createdAt" | "completedAt" | "model" | "prompt">>
  & { keeper: AnswerKeeper | undefined; body: JsonBody; cap: OutputCap | undefined };

/** The echo of a text request. Its body is parsed when an answer repeats it: few do. */
export class RequestEcho implements Echo {
  readonly requestId: string;
  readonly createdAt: number;
  readonly completedAt: () => number;
  readonly model: string;
  readonly prompt: Prompt;
  readonly keeper?: AnswerKeeper;
  readonly #body: JsonBody;
  readonly #cap: OutputCap | undefined;

  constructor({ requestId, createdAt, completedAt, model, prompt, keeper, body, cap }: EchoParts) {
    this.requestId = requestId;
    this.createdAt = createdAt;
    this.completedAt = completedAt;
    this.model = model;
    this.prompt = prompt;
    if (keeper !== undefined) this.keeper = keeper;
    this.#body = body;
    this.#cap = cap;
  }

  get request(): JsonObject {
    const { value } = this.#body;
    return this.#cap === undefined ? value : { ...value, [this.#cap.param]: this.#cap.tokens };
  }
}
