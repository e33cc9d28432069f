/** Reads JSON that is mostly images: their base64 is cut out while it arrives, the little that is left is parsed. */
import { GatewayError } from "../../errors.ts";
import { type Json, parseJson } from "../../json/json.ts";

/** Base64 as it stood in the JSON text, in pieces, escapes and all. */
export type RawImage = readonly string[];

/** A reader of one JSON text. */
export interface ImageCutter {
  /** Takes the next text; answers the images that end in it. @throws {GatewayError} `upstream` past a limit */
  push(text: string): RawImage[];
  /**
   * What is left when the text is over, the images replaced by short strings.
   * @throws {GatewayError} `upstream` where it is no JSON or breaks off
   */
  end(): Json;
}

/** Longest image, in characters of base64: three times the largest a plain file of 3840x2160 pixels takes. */
const PICTURE_LENGTH = 128 * 1024 * 1024;

/** Longest text beside the images, in characters: ten prompts as the upstream has revised them, many times over. */
const REST_LENGTH = 4 * 1024 * 1024;

/** Longest name of a member that matters here, in characters. */
const NAME_LENGTH = 16;

/**
 * Starts a reader.
 * @param where `answer`: images are the members `b64_json` of the objects in the list `data`; `event`: the text itself
 * is one object with such a member
 */
export function imageCutter(where: "answer" | "event"): ImageCutter {
  const place = where === "answer" ? "{[{" : "{";
  const rest: string[] = [];
  let restLength = 0;
  const levels: string[] = [];
  /** The last of `{ [ , :` outside strings: tells names from values. */
  let mark = "";
  let inString = false;
  let escaped = false;
  /** Name of the latest member, of the latest one in the outermost object, and whether one is being read. */
  let name = "";
  let topName = "";
  let inName = false;
  /** The image that is being read. */
  let image: string[] | undefined;
  let imageLength = 0;
  let count = 0;

  function keep(text: string): void {
    restLength += text.length;
    if (restLength > REST_LENGTH) throw new GatewayError("upstream", "Cannot read the upstream's answer: too long");
    rest.push(text);
  }

  function isImageNext(): boolean {
    return mark === ":" && name === "b64_json" && levels.length === place.length && levels.join("") === place &&
      (where === "event" || topName === "data");
  }

  /** Takes a character outside of images; answers whether an image starts after it. */
  function step(letter: string): boolean {
    if (inString) {
      if (escaped) escaped = false;
      else if (letter === "\\") escaped = true;
      else if (letter === '"') {
        inString = false;
        if (inName && levels.length === 1) topName = name;
        return false;
      }
      if (inName && name.length < NAME_LENGTH) name += letter;
      return false;
    }
    switch (letter) {
      case '"':
        if (isImageNext()) return true;
        inString = true;
        inName = mark !== ":" && levels.at(-1) === "{";
        if (inName) name = "";
        return false;
      case "{":
      case "[":
        levels.push(letter);
        mark = letter;
        return false;
      case "}":
      case "]":
        levels.pop();
        return false;
      case ",":
      case ":":
        mark = letter;
    }
    return false;
  }

  /** Takes what belongs to the image; answers where it ends, or the text's end. */
  function takeImage(text: string, { at, into }: { at: number; into: string[] }): number {
    // A quote inside base64 would be escaped, but there is none in base64.
    const quote = text.indexOf('"', at);
    const end = quote < 0 ? text.length : quote;
    imageLength += end - at;
    if (imageLength > PICTURE_LENGTH) {
      throw new GatewayError("upstream", "Cannot read the upstream's answer: an image is too large");
    }
    into.push(text.slice(at, end));
    return end;
  }

  return {
    push(text) {
      const done: RawImage[] = [];
      let at = 0;
      let from = 0;
      while (at < text.length) {
        if (image !== undefined) {
          from = at = takeImage(text, { at, into: image });
          if (at === text.length) break;
          done.push(image);
          image = undefined;
          imageLength = 0;
          at++;
          continue;
        }
        if (step(text.charAt(at++))) {
          keep(`${text.slice(from, at)}${count++}`);
          image = [];
          from = at;
        }
      }
      if (image === undefined) keep(text.slice(from));
      return done;
    },
    end() {
      try {
        return parseJson(rest.join(""));
      } catch (cause) {
        throw new GatewayError("upstream", "Cannot read the upstream's answer: expected JSON", { cause });
      }
    },
  };
}
