/**
 * The plain forms of the system prompt, messages and tools, which are relayed without being decoded, as in
 * `../chat/plain_contents.ts`.
 */
import { shapes } from "../../json/mod.ts";
import { cacheMark, type PlainContents } from "../plain_contents.ts";
import { COUNTS } from "../fields.ts";
import { MAX_CACHE_MARKS } from "../canonical/cache_mark.ts";

const { boolean, either, idText, list, nameText, nothing, nullable, object, readObject, readText } = shapes;
const { IMAGE_TYPES, imageBase64, sealedText, someText, words } = shapes;

const MARK = "?cache_control ?cache_control=null";
const name = nameText(128, { isName: true });
const id = idText(Infinity);

const text = object({ type: words("text"), text: someText, cache_control: cacheMark, citations: nothing }, [
  `type text ${MARK} ?citations ?citations=null`,
]);
const textBlocks = list(text, { max: COUNTS.parts });

const source = object({ type: words("base64"), media_type: words(...IMAGE_TYPES), data: imageBase64 }, [
  ...IMAGE_TYPES.map((type) => `type media_type=${type} data`),
]);
const resultContent = list(
  object({ type: words("text", "image"), text: someText, source, cache_control: cacheMark, citations: nothing }, [
    `type=text text ${MARK} ?citations ?citations=null`,
    `type=image source ${MARK}`,
  ]),
  { max: COUNTS.parts },
);

const block = object({
  type: words("text", "image", "tool_use", "tool_result", "thinking", "redacted_thinking"),
  text: someText,
  citations: nothing,
  source,
  id,
  name,
  input: readObject,
  tool_use_id: id,
  content: nullable(either(readText, resultContent)),
  is_error: nullable(boolean),
  thinking: readText,
  signature: nullable(sealedText),
  data: sealedText,
  cache_control: cacheMark,
}, [
  `type=text text ?citations ?citations=null ${MARK}`,
  `image: type=image source ${MARK}`,
  `call: type=tool_use id name input ${MARK}`,
  `result: type=tool_result tool_use_id ?content ?content=list ?content=null ?is_error ?is_error=null ${MARK}`,
  "call: type=thinking thinking ?signature ?signature=null",
  "call: type=redacted_thinking data",
]);

const message = object({
  role: words("user", "assistant", "system"),
  content: either(readText, list(block, { max: COUNTS.parts })),
}, [
  "role=user content",
  "role=user content=list ?content=result ?content=image",
  "role=assistant content",
  "role=assistant content=list ?content=call",
  "role=system content",
  "role=system content=list",
]);

const tool = object({
  type: nullable(words("custom")),
  name,
  description: nullable(readText),
  input_schema: object({ type: nullable(words("object")) }, ["?type ?type=null"], { isOpen: true, isRead: true }),
  strict: nullable(boolean),
  cache_control: cacheMark,
}, [`?type ?type=null name ?description ?description=null input_schema ?strict ?strict=null ${MARK}`]);

/** The plain contents of a messages request. */
export const plainContents: PlainContents = {
  shapes: new Map([
    ["system", nullable(either(readText, textBlocks))],
    ["messages", list(message, { min: 1, max: COUNTS.messages })],
    ["tools", list(tool, { max: COUNTS.tools })],
  ]),
  needed: ["messages"],
  maxMarks: MAX_CACHE_MARKS,
  maxImages: COUNTS.images,
};
