// Numbers as people read them, and as the server packs them.

export const count = (value) => Math.round(value).toLocaleString("en");
export const counted = (value, word) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;
export const decimals = (value, digits) =>
  value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
export const percent = (share) => (share < 0.001 ? "under 0.1 %" : `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`);
export const significant = (value, digits) => Number(value.toPrecision(digits));

export function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

export const labelsOf = (base64) => new Uint16Array(bytesOf(base64).buffer);
