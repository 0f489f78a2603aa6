// What shows one record lights up together: points of figures and rows of the table.

/// Lights what belongs to the record, darkens the rest; '' darkens all.
type Light = (record: string) => void;

export class Links {
  private readonly lights: Light[] = [];
  private lit = '';

  add(light: Light): void {
    this.lights.push(light);
  }

  light(record: string): void {
    if (record === this.lit) return;
    this.lit = record;
    for (const light of this.lights) light(record);
  }
}
