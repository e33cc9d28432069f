/**
 * The plain forms of the instructions, input and tools, which are relayed without being decoded, as in
 * `../chat/plain_contents.ts`.
 */
import { shapes } from "../../json/mod.ts";
import type { PlainContents } from "../plain_contents.ts";
import { COUNTS } from "../fields.ts";

const { anyText, boolean, either, idText, list, nameText, nothing, nullable, object, readObject, readText } = shapes;
const { imageUrl, sealedText, words } = shapes;

const optionalText = nullable(anyText);
const callId = idText(Infinity);
const calledName = nameText(256, { isName: false });
const name = nameText(128, { isName: true });

const emptyList = list(nothing, { max: 0 });
const DETAILS = ["auto", "low", "high", "original"];
const part = object({
  type: words("input_text", "output_text", "text", "refusal", "input_image"),
  text: readText,
  refusal: readText,
  image_url: imageUrl,
  detail: nullable(words(...DETAILS)),
  annotations: nullable(emptyList),
  logprobs: nullable(emptyList),
}, [
  ...["input_text", "output_text", "text"].map((type) =>
    `type=${type} text ?annotations ?annotations=null ?logprobs ?logprobs=null`
  ),
  "type=refusal refusal",
  `image: type=input_image image_url ?detail=null ${DETAILS.map((detail) => `?detail=${detail}`).join(" ")}`,
]);
const content = either(readText, list(part, { max: COUNTS.parts }));

const textPartsOf = (...types: string[]) =>
  list(
    object({ type: words(...types), text: readText }, [
      ...(types.length === 1 ? ["type text"] : types.map((type) => `type=${type} text`)),
    ]),
    { max: COUNTS.parts },
  );

const ITEM_MEMBERS = "?id ?id=null ?status ?status=null";
const item = object({
  type: words(
    "message",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "reasoning",
  ),
  role: words("user", "assistant", "system", "developer"),
  content: either(content, nothing),
  id: optionalText,
  status: optionalText,
  phase: optionalText,
  call_id: callId,
  name: calledName,
  arguments: readText,
  input: readText,
  output: content,
  summary: nullable(textPartsOf("summary_text")),
  encrypted_content: nullable(sealedText),
}, [
  ...["user", "assistant", "system", "developer"].flatMap((role) => [
    `?type=message role=${role} content ${ITEM_MEMBERS} ?phase ?phase=null`,
    `?type=message role=${role} content=list ${
      role === "user" ? "?content=image " : ""
    }${ITEM_MEMBERS} ?phase ?phase=null`,
  ]),
  `type=function_call call_id name arguments ${ITEM_MEMBERS}`,
  `type=custom_tool_call call_id name input ${ITEM_MEMBERS}`,
  ...["function_call_output", "custom_tool_call_output"].flatMap((type) => [
    `type=${type} call_id output ${ITEM_MEMBERS}`,
    `type=${type} call_id output=list ?output=image ${ITEM_MEMBERS}`,
  ]),
  `type=reasoning ?summary ?summary=null ?content=null encrypted_content ${ITEM_MEMBERS}`,
  // With an id it would refer to stored reasoning.
  "type=reasoning ?summary ?summary=null ?content=null ?encrypted_content=null ?id=null ?status ?status=null",
]);

const tool = object({
  type: words("function", "custom"),
  name,
  description: nullable(readText),
  parameters: nullable(readObject),
  strict: nullable(boolean),
  format: nullable(object({ type: words("text", "grammar"), syntax: readText, definition: readText }, [
    "type=text",
    "type=grammar syntax definition",
  ])),
}, [
  "type=function name ?description ?description=null ?parameters ?parameters=null ?strict ?strict=null",
  "type=custom name ?description ?description=null ?format ?format=null",
]);

/** The plain contents of a responses request. */
export const plainContents: PlainContents = {
  shapes: new Map([
    ["instructions", nullable(readText)],
    ["input", either(readText, list(item, { min: 1, max: COUNTS.messages }))],
    ["tools", list(tool, { max: COUNTS.tools })],
  ]),
  needed: ["input"],
  maxMarks: Infinity,
  maxImages: COUNTS.images,
};
