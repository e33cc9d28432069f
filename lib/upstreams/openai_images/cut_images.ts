/** Reads JSON that is mostly base64: cuts out the images as they arrive, and parses the small rest. */
import { GatewayError } from "../../errors.ts";
import { type Json, parseJson } from "../../json/mod.ts";

/** An image as chunks of base64, as in the JSON text with its escapes. */
export type RawImage = readonly string[];

/** Longest image in base64 characters: three times an uncompressed image of 3840x2160 pixels. */
const MAX_IMAGE_LENGTH = 128 * 1024 * 1024;

/** Longest text besides the images, in characters. It is enough for many revised prompts. */
const MAX_REST_LENGTH = 4 * 1024 * 1024;

/** Matches the start of an image. It cannot match inside a JSON string, where the quotes would be escaped. */
const IMAGE_START = /"b64_json"\s*:\s*"/;

/** Characters at the end of a text in which an image may begin that continues in the next text. */
const TAIL_LENGTH = 64;

/** Depth of the members of an answer, and of those of an item of its member `data`. */
const TOP_DEPTH = 1;
const ITEM_DEPTH = 3;

/**
 * Incremental reader of one JSON text. Its images are members `b64_json`: that of an event, or those of the items in
 * the member `data` of an answer. Other members with this name, such as those of images that the host repeats from the
 * request, are removed.
 */
export class ImageCutter {
  readonly #isEvent: boolean;
  readonly #position = new JsonPosition();
  readonly #rest: string[] = [];
  #restLength = 0;
  /** The end of the last text outside images. It is searched again with the next text. */
  #tail = "";
  #image: string[] | undefined;
  #imageLength = 0;
  #count = 0;

  /** @param of `event`: a streamed event; `answer`: a whole answer */
  constructor(of: "event" | "answer") {
    this.#isEvent = of === "event";
  }

  /** Reads the next text. @returns the images that end in it @throws {GatewayError} `upstream` above a limit */
  push(text: string): RawImage[] {
    const finished: RawImage[] = [];
    for (let left = text; left !== "";) {
      if (this.#image === undefined) {
        left = this.#findImage(this.#tail + left);
        continue;
      }
      // Base64 contains no quotes.
      const quote = left.indexOf('"');
      const end = quote < 0 ? left.length : quote;
      this.#imageLength += end;
      if (this.#imageLength > MAX_IMAGE_LENGTH) {
        throw new GatewayError("upstream", "Cannot read the upstream's answer: an image is too large");
      }
      this.#image.push(left.slice(0, end));
      left = left.slice(end);
      if (quote < 0) break;
      if (this.#isWanted()) finished.push(this.#image);
      this.#image = undefined;
      this.#imageLength = 0;
    }
    return finished;
  }

  /**
   * Parses the rest, in which each image is replaced by a short string.
   * @throws {GatewayError} `upstream` for invalid or incomplete JSON
   */
  end(): Json {
    try {
      return parseJson(this.#rest.join("") + this.#tail);
    } catch (cause) {
      throw new GatewayError("upstream", "Cannot read the upstream's answer: expected JSON", { cause });
    }
  }

  /** Keeps the text before the next image. @returns the text after its start; "" if no image begins */
  #findImage(text: string): string {
    // `#keep` refuses longer texts.
    const { 0: start, index = 0 } = IMAGE_START.exec(text.slice(0, MAX_REST_LENGTH + TAIL_LENGTH)) ?? {};
    const kept = start === undefined ? Math.max(0, text.length - TAIL_LENGTH) : index + start.length;
    this.#keep(text.slice(0, kept));
    this.#tail = start === undefined ? text.slice(kept) : "";
    if (start === undefined) return "";
    this.#keep(String(this.#count++));
    this.#image = [];
    return text.slice(kept);
  }

  /** Returns whether the current member `b64_json` is an image of the answer. */
  #isWanted(): boolean {
    const { depth, name } = this.#position;
    return this.#isEvent ? depth === TOP_DEPTH : depth === ITEM_DEPTH && name === "data";
  }

  #keep(text: string): void {
    this.#restLength += text.length;
    if (this.#restLength > MAX_REST_LENGTH) {
      throw new GatewayError("upstream", "Cannot read the upstream's answer: too long");
    }
    this.#rest.push(text);
    this.#position.push(text);
  }
}

/** The position in an incomplete JSON text. */
class JsonPosition {
  /** Number of open objects and arrays. */
  depth = 0;
  /** The last string at the top level: within a value, the name of its member. */
  name = "";
  #isInString = false;
  #isEscaped = false;

  /** Reads the next text. */
  push(text: string): void {
    for (const char of text) {
      if (this.#isInString) this.#readInString(char);
      else if (char === '"') {
        this.#isInString = true;
        if (this.depth === TOP_DEPTH) this.name = "";
      } else if (char === "{" || char === "[") this.depth++;
      else if (char === "}" || char === "]") this.depth--;
    }
  }

  #readInString(char: string): void {
    if (char === '"' && !this.#isEscaped) {
      this.#isInString = false;
      return;
    }
    this.#isEscaped = char === "\\" && !this.#isEscaped;
    if (this.depth === TOP_DEPTH) this.name += char;
  }
}
