//! Message sizes, and the life of a stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{ArrayRef, BooleanArray, Int64Array, LargeListArray, ListArray, StringArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{Field, Fields, Int64Type, Schema};
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use futures::TryStreamExt;
use proptest::prelude::*;

use super::*;
use crate::server::wire::wire_schema;

fn rows_of(batches: Vec<RecordBatch>) -> Rows {
    let schema = wire_schema(&batches[0].schema(), None);
    Rows {
        schema,
        batches: stream::iter(batches.into_iter().map(Ok)).boxed(),
    }
}

async fn send(rows: Rows) -> Vec<FlightData> {
    messages(Call::start("Test"), rows, KEEP_ALIVE).try_collect().await.unwrap()
}

async fn receive(sent: Vec<FlightData>) -> Vec<RecordBatch> {
    let input = stream::iter(sent.into_iter().map(Ok::<_, FlightError>));
    FlightRecordBatchStream::new_from_flight_data(input).try_collect().await.unwrap()
}

fn text(lengths: &[usize]) -> RecordBatch {
    let values: Vec<String> = lengths.iter().enumerate().map(|(i, n)| format!("{}", i % 10).repeat(*n)).collect();
    RecordBatch::try_from_iter([("t", Arc::new(StringArray::from(values)) as ArrayRef)]).unwrap()
}

#[tokio::test]
async fn an_empty_result_starts_with_its_schema() {
    let schema = wire_schema(&Schema::new(vec![Field::new("a", DataType::Utf8View, true)]), None);
    let sent = send(Rows {
        schema: Arc::clone(&schema),
        batches: stream::empty().boxed(),
    })
    .await;
    assert_eq!(sent.len(), 1);
    assert_eq!(&Schema::try_from(&sent[0]).unwrap(), schema.as_ref());
}

#[tokio::test]
async fn messages_of_text_stay_at_the_target() {
    // 200 bytes a row, all in one batch: the buffers hold far more than a message may.
    let batch = text(&vec![200; 100_000]);
    let sent = send(rows_of(vec![batch.clone()])).await;
    for message in &sent[1..] {
        assert!(message.data_body.len() <= TARGET, "{}", message.data_body.len());
    }
    // 204 bytes with the offset, 5140 rows a message.
    assert_eq!(sent.len() - 1, 100_000usize.div_ceil(TARGET / 204));
    let received = receive(sent).await;
    let whole = arrow::compute::concat_batches(&received[0].schema(), &received).unwrap();
    assert_eq!(whole.column(0), batch.column(0));
}

#[tokio::test]
async fn a_row_beyond_the_ceiling_goes_alone() {
    let batch = text(&[10, 6 << 20, 10, 3 << 20, 2 << 20, 10]);
    let sent = send(rows_of(vec![batch.clone()])).await;
    let received = receive(sent.clone()).await;
    assert_eq!(received.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [1, 1, 1, 1, 1, 1]);
    assert!(sent[2].data_body.len() > 6 << 20);
}

#[tokio::test]
async fn slices_of_large_buffers_are_not_over_split() {
    let batch = text(&vec![200; 100_000]).slice(50_000, 100);
    assert_eq!(send(rows_of(vec![batch])).await.len(), 2);
}

#[tokio::test]
async fn large_lists_arrive_as_announced() {
    let item = Arc::new(Field::new("item", DataType::Int64, true));
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..300_000));
    let offsets = OffsetBuffer::<i64>::from_lengths([100_000, 0, 200_000]);
    let list: ArrayRef = Arc::new(LargeListArray::new(item, offsets, values, None));
    let sent = send(rows_of(vec![RecordBatch::try_from_iter([("l", list)]).unwrap()])).await;
    let received = receive(sent).await;
    assert!(matches!(received[0].schema().field(0).data_type(), DataType::LargeList(_)));
    // 800 kB and an empty row, then one row of 1.6 MB.
    assert_eq!(received.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(
        received[1].column(0).as_list::<i64>().value(0).as_primitive::<Int64Type>().value(0),
        100_000
    );
}

#[tokio::test]
async fn an_error_after_the_first_batch_is_a_status() {
    let batch = text(&[1, 2]);
    let rows = Rows {
        schema: wire_schema(&batch.schema(), None),
        batches: stream::iter([Ok(batch), Err(Error::corrupt("bad page"))]).boxed(),
    };
    let sent: Vec<_> = messages(Call::start("Test"), rows, KEEP_ALIVE).collect().await;
    assert_eq!(sent.len(), 3);
    assert!(sent[1].is_ok());
    assert_eq!(sent[2].as_ref().unwrap_err().code(), tonic::Code::DataLoss);
}

#[tokio::test]
async fn a_panic_of_the_query_is_a_status() {
    let schema = Arc::new(Schema::empty());
    let batches = stream::once(async { panic!("operator") }).boxed();
    let sent: Vec<_> = messages(Call::start("Test"), Rows { schema, batches }, KEEP_ALIVE).collect().await;
    assert_eq!(sent[1].as_ref().unwrap_err().code(), tonic::Code::Internal);
    assert_eq!(sent.len(), 2);
}

#[tokio::test]
async fn dropping_the_stream_drops_the_query() {
    struct Guard(Arc<AtomicBool>);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicBool::new(false));
    let guard = Guard(Arc::clone(&dropped));
    let batches = stream::repeat_with(move || {
        let _ = &guard;
        Ok(text(&[1]))
    })
    .boxed();
    let schema = wire_schema(&text(&[1]).schema(), None);
    let mut sent = Box::pin(messages(Call::start("Test"), Rows { schema, batches }, KEEP_ALIVE));
    assert!(sent.next().await.unwrap().is_ok());
    assert!(sent.next().await.unwrap().is_ok());
    drop(sent);
    assert!(dropped.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_silent_query_sends_empty_batches() {
    let schema = wire_schema(&text(&[1]).schema(), None);
    let batches = stream::pending().boxed();
    let sent: Vec<_> = messages(Call::start("Test"), Rows { schema, batches }, Duration::from_millis(1))
        .take(3)
        .try_collect()
        .await
        .unwrap();
    assert_eq!(receive(sent).await.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [0, 0]);
}

prop_compose! {
    fn any_batch()(
        rows in prop::collection::vec((any::<Option<i64>>(), any::<Option<bool>>(), prop::option::of("[a-z]{0,40}"), 0usize..5), 1..200),
        cut in any::<prop::sample::Index>(),
    ) -> RecordBatch {
        let ints: ArrayRef = Arc::new(rows.iter().map(|r| r.0).collect::<Int64Array>());
        let bools: ArrayRef = Arc::new(rows.iter().map(|r| r.1).collect::<BooleanArray>());
        let texts: ArrayRef = Arc::new(rows.iter().map(|r| r.2.clone()).collect::<StringArray>());
        let lengths: Vec<usize> = rows.iter().map(|r| r.3).collect();
        let total: usize = lengths.iter().sum();
        let items: ArrayRef = Arc::new((0..total).map(|i| (i % 3 != 0).then(|| format!("item {i}"))).collect::<StringArray>());
        let list: ArrayRef = Arc::new(ListArray::new(
            Arc::new(Field::new("item", DataType::Utf8, true)),
            OffsetBuffer::from_lengths(lengths),
            items,
            None,
        ));
        let fields: Fields = vec![Field::new("i", DataType::Int64, true), Field::new("b", DataType::Boolean, true)].into();
        let nested: ArrayRef = Arc::new(StructArray::new(fields, vec![Arc::clone(&ints), Arc::clone(&bools)], None));
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("ints", ints, true),
            ("bools", bools, true),
            ("texts", texts, true),
            ("list", list, true),
            ("nested", nested, true),
        ])
        .unwrap();
        let from = cut.index(rows.len());
        batch.slice(from, rows.len() - from)
    }
}

proptest! {
    #[test]
    fn the_computed_size_bounds_the_encoded_one(batch in any_batch()) {
        let computed: usize = batch.columns().iter().map(|c| encoded_size(c.as_ref(), 0, batch.num_rows())).sum();
        let encoded = Encoder::new(batch.schema()).message(&batch).unwrap().data_body.len();
        prop_assert!(encoded <= computed, "{encoded} > {computed}");
        // Only validity bitmaps of slices without nulls are counted in vain.
        prop_assert!(computed <= encoded + 8 * ALIGNMENT, "{computed} >> {encoded}");
    }

    #[test]
    fn slices_cover_all_rows(batch in any_batch(), target in 1usize..20_000) {
        let slices = split(&batch, target);
        let whole = arrow::compute::concat_batches(&batch.schema(), &slices).unwrap();
        prop_assert_eq!(whole, batch);
    }
}
