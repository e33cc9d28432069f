/** The body of one request, and the memory that is reserved for it. */
import type { RequestRecord } from "../observe/request_record.ts";
import { GatewayError } from "../errors.ts";
import type { ScanPlan } from "../json/mod.ts";
import { LARGE_BODY_BYTES, yieldToEventLoop } from "../scheduler.ts";
import { type BodyRules, readJsonBody } from "./body.ts";
import { bodyTooLarge, declaredLength } from "./body_head.ts";
import { readBytes } from "./read_bytes.ts";
import type { JsonBody } from "./router.ts";

/** Receives the progress of a body. */
export interface BodyProgress {
  record: Pick<RequestRecord, "bytesIn">;
  /** Called when all of the body is there. */
  bodyArrived: () => void;
}

/** Reads the body of one request, once. */
export class RequestBody {
  readonly #request: Request;
  readonly #rules: BodyRules;
  readonly #progress: BodyProgress;
  #reading: Promise<JsonBody> | undefined;
  #reserved = 0;
  #isOver = false;

  constructor(request: Request, rules: BodyRules, progress: BodyProgress) {
    this.#request = request;
    this.#rules = rules;
    this.#progress = progress;
  }

  /** As `RouteContext.readJson`. */
  readJson(scan?: ScanPlan): Promise<JsonBody> {
    return this.#reading ??= this.#read(scan);
  }

  /** As `RouteContext.readForm`. */
  async readForm(): Promise<URLSearchParams> {
    const { limits, timers, headers } = this.#rules;
    if (!/^application\/x-www-form-urlencoded\b/i.test(headers.get("content-type") ?? "")) {
      throw new GatewayError("unsupported_media_type", "Cannot read this body: expected the fields of a form");
    }
    let bytes = 0;
    const keeper = {
      take: (more: number) => {
        bytes += more;
        if (bytes > limits.jsonBytes) throw bodyTooLarge(limits.jsonBytes);
        this.reserve(more);
      },
    };
    try {
      const body = await readBytes(this.#request, { limits, keeper, length: declaredLength(headers), timers });
      return new URLSearchParams(new TextDecoder().decode(body));
    } finally {
      this.#progress.bodyArrived();
    }
  }

  /** As `RouteContext.reserve`. */
  reserve(bytes: number, received: number = bytes): void {
    const { budget, limits } = this.#rules;
    budget.reserve(bytes, limits.budgetBytes);
    this.#reserved += bytes;
    this.#progress.record.bytesIn += received;
  }

  /** Gives the memory back. `isAnswered`: false where the handler has thrown, and may not wait for the body. */
  release(isAnswered: boolean): void {
    this.#isOver = true;
    this.#rules.budget.release(this.#reserved);
    if (!isAnswered) this.#reading?.catch(() => {});
  }

  async #read(scan: ScanPlan | undefined): Promise<JsonBody> {
    const { record, bodyArrived } = this.#progress;
    try {
      const { body, bytes, reservedBytes } = await readJsonBody(this.#request, this.#rules, scan);
      record.bytesIn += bytes;
      if (this.#isOver) this.#rules.budget.release(reservedBytes);
      else this.#reserved += reservedBytes;
      if (bytes > LARGE_BODY_BYTES) await yieldToEventLoop();
      return body;
    } finally {
      bodyArrived();
    }
  }
}
