/** Follows the ledger: reads the requests that match a filter as they are entered. */
import type { EntryFilter } from "../../store/search.ts";
import { readFilter, readNew, type RequestParts, type RequestTexts, requireConfigured } from "./requests.ts";
import type { RequestLine } from "./request_schemas.ts";
import { readCount } from "./usage_filter.ts";

/** Names of the parameters of a tail. */
export const TAIL_PARAMETERS = [
  ...["key", "group", "model", "upstream", "endpoint", "status", "failed", "reason"] as const,
  ...["user", "tag", "min_cost_usd", "min_ms", "after_seq"] as const,
] satisfies (keyof RequestTexts)[];

/** The parameters of a tail as text. */
export type TailTexts = Pick<RequestTexts, typeof TAIL_PARAMETERS[number]>;

/** A position in the ledger that advances with each read. */
export class RequestTail {
  readonly #parts: RequestParts;
  readonly #filter: EntryFilter;
  /** Seq of the last entry that was read. */
  #seq: number;

  private constructor(parts: RequestParts, filter: EntryFilter, seq: number) {
    this.#parts = parts;
    this.#filter = filter;
    this.#seq = seq;
  }

  /**
   * Opens a tail after the entry `after_seq`, or by default at the end of the ledger.
   * @throws {ReportQueryError} for parameters that cannot be read
   */
  static async open(parts: RequestParts, texts: TailTexts): Promise<RequestTail> {
    const filter = { ...await readFilter(texts, parts, 0), since: 0, until: Number.MAX_SAFE_INTEGER };
    requireConfigured(filter, parts.config);
    const end = await parts.ledger.lastSeq();
    // The ledger of a restored backup may be shorter than the one from which `after_seq` is.
    return new RequestTail(parts, filter, Math.min(readCount(texts.after_seq, "after_seq") ?? end, end));
  }

  /** Seq of the last entry that was read, whether it matched the filter or not. */
  get seq(): number {
    return this.#seq;
  }

  /** Reads some of the requests that were entered since the last read. `isEnd`: the ledger had no further entries. */
  async read(): Promise<{ requests: RequestLine[]; isEnd: boolean }> {
    const { data, last_seq } = await readNew(this.#parts, { filter: this.#filter, after: this.#seq });
    const isEnd = last_seq === this.#seq;
    this.#seq = last_seq;
    return { requests: data, isEnd };
  }
}
